// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_SANDBOX_LEVEL_H_
#define HARNESS_MODEL_SANDBOX_LEVEL_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace bkm {

// How well a cell is kept from the machine and from other cells, the strongest level first. Written
// to run.json and published: never rename.
enum class SandboxLevel {
  kFull,  // own namespaces and file system, no capability, an unprivileged user
  kWeak,  // no namespaces: Landlock, seccomp, resource limits
  kOff,
};

absl::string_view Name(SandboxLevel level);
std::optional<SandboxLevel> SandboxLevelFromName(absl::string_view name);
// "full", "weak", "off".
const std::vector<std::string>& SandboxLevelNames();

// The level that a cell of a run had on this device. On a GPU, "full" becomes "full-gpu": the cell
// reaches the driver, sees parts of /sys, and has neither the kernel's limit on data nor a
// read-only /proc. It is a level of results only: nobody can ask for it.
std::string LevelOnDevice(const std::string& recorded, absl::string_view device);
// The levels that results have: "full", "full-gpu", "weak", "off".
const std::vector<std::string>& RecordedLevelNames();

// The weaker of two recorded levels. Runs of older versions recorded none (""): the cells ran in
// namespaces where the machine allowed it. That ranks between weak and full-gpu.
std::string WeakerLevel(const std::string& a, const std::string& b);
// A recorded level for people: "full", or "not recorded".
std::string LevelText(absl::string_view recorded);

}  // namespace bkm

#endif  // HARNESS_MODEL_SANDBOX_LEVEL_H_
