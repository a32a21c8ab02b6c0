// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_SANDBOX_H_
#define HARNESS_CELL_SANDBOX_H_

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/json.h"
#include "harness/cell/minimal_root.h"
#include "harness/model/sandbox_level.h"

namespace bkm {

// What confines all cells of a worker.
struct Sandbox {
  SandboxLevel level = SandboxLevel::kFull;
  // What every cell sees. kFull: mounts of the worker's own root; kWeak: paths of the machine.
  std::vector<std::filesystem::path> shared;
  std::vector<std::pair<std::filesystem::path, std::string>> links;  // kFull: /bin -> usr/bin
  bool HasNamespaces() const { return level == SandboxLevel::kFull; }
};

Json ToJson(const Sandbox& sandbox);
absl::StatusOr<Sandbox> SandboxFromJson(const Json& json);

// What one cell sees beside that, and as whom.
struct CellView {
  std::filesystem::path dir;                 // work/ and tensors/ in it are writable
  std::vector<Attachment> attachments;       // kFull: work/ and tensors/ among them
  std::vector<std::filesystem::path> reads;  // kWeak
  bool gpu = false;                          // kFull: `attachments` has the devices
  uid_t user = 0;                            // kFull
};

// In the forked cell: confines the process for good. kFull: the process is in its own process
// namespace already and has the capabilities of its user namespace. Returns what holds now, by
// looking: a part that is asked for and does not hold is an error.
absl::StatusOr<std::vector<std::string>> EnterSandbox(const Sandbox& sandbox, const CellView& view);

// kWeak, for one program without network: lets it read `reads` and write to `writes`.
absl::Status EnterWeakSandbox(const std::vector<std::filesystem::path>& reads,
                              const std::vector<std::filesystem::path>& writes);

// In a new network namespace.
absl::Status BringLoopbackUp();

// Confines a child as a cell and returns what held there.
absl::StatusOr<std::vector<std::string>> TrySandbox(const Sandbox& sandbox, uid_t user);

}  // namespace bkm

#endif  // HARNESS_CELL_SANDBOX_H_
