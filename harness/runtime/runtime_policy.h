// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNTIME_RUNTIME_POLICY_H_
#define HARNESS_RUNTIME_RUNTIME_POLICY_H_

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/json.h"

namespace bkm {

// How a runtime's packages are chosen. Written to locks: never rename.
enum class PolicyKind {
  kAsOf,      // as the registry stood at the end of the month of the later subject
  kNewest,    // as an installer would choose today
  kLocked,    // a committed lock
  kExisting,  // an interpreter as it is found
};
absl::string_view Name(PolicyKind kind);

// One file of matrices/runtimes.
struct RuntimePolicy {
  std::string name;           // the file's name without .json
  std::string python;         // "3.11"
  std::string torch;          // the default of the torch axis; empty when locked or existing
  std::string torch_backend;  // uv's --torch-backend, unless the environment says whence torch
  PolicyKind policy = PolicyKind::kAsOf;
  // as-of: the last day whose packages are seen, in place of the end of the subjects' month; for
  // folders, which have no date.
  std::optional<std::chrono::sys_days> day;
  std::vector<std::string> base;  // requirements; {torch} stands for the version of torch
  // Packages that come with the accelerator build of torch and no one declares, as triton: the
  // version that torch=={torch} of the registry asks for is part of the base.
  std::vector<std::string> torch_brings;
  // Shell globs of packages whose versions torch dictates, as nvidia-*: where a month is resolved,
  // they may be younger than it, as torch may.
  std::vector<std::string> torch_dictates;
  std::filesystem::path lock;         // locked: a RuntimeLock as JSON
  std::filesystem::path interpreter;  // existing
  bool operator==(const RuntimePolicy&) const = default;
};

// Strict. Relative paths are taken from the folder of `origin`; the name must be `origin`'s stem.
absl::StatusOr<RuntimePolicy> RuntimePolicyFromJson(const Json& json,
                                                    const std::filesystem::path& origin);

// The policy `name` in the first of `folders` that has it; NotFound with the names that are there.
absl::StatusOr<RuntimePolicy> ReadRuntimePolicy(const std::vector<std::filesystem::path>& folders,
                                                const std::string& name);

}  // namespace bkm

#endif  // HARNESS_RUNTIME_RUNTIME_POLICY_H_
