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

// How a runtime's packages are chosen. The names are written to locks: never rename them.
enum class PolicyKind {
  kAsOf,      // from the registry as of the end of the later subject's month
  kNewest,    // as an installer would choose today
  kLocked,    // from a committed lock
  kExisting,  // those of an existing interpreter
};
absl::string_view Name(PolicyKind kind);

// One file of matrices/runtimes.
struct RuntimePolicy {
  std::string name;           // the file's name without .json
  std::string python;         // "3.11"
  std::string torch;          // the default of the torch axis; empty when locked or existing
  std::string torch_backend;  // uv's --torch-backend, unless the environment overrides it
  PolicyKind policy = PolicyKind::kAsOf;
  // as-of: the last day whose uploads count, instead of the end of the subjects' month. For
  // folders, which have no date.
  std::optional<std::chrono::sys_days> day;
  std::vector<std::string> base;  // requirements; {torch} stands for the version of torch
  // Packages, such as triton, that come with the accelerator build of torch and that nobody
  // declares. The version that the registry's torch=={torch} requires is added to the base.
  std::vector<std::string> torch_brings;
  // Shell globs of packages, such as nvidia-*, whose versions torch dictates. Like torch, they are
  // exempt from the cutoff of an as-of policy.
  std::vector<std::string> torch_dictates;
  std::filesystem::path lock;         // locked: a RuntimeLock as JSON
  std::filesystem::path interpreter;  // existing
  bool operator==(const RuntimePolicy&) const = default;
};

// Strict. Relative paths start at the folder of `origin`. The name must be the stem of `origin`.
absl::StatusOr<RuntimePolicy> RuntimePolicyFromJson(const Json& json,
                                                    const std::filesystem::path& origin);

// Reads the policy `name` from the first of `folders` that has it. NotFound lists the known names.
absl::StatusOr<RuntimePolicy> ReadRuntimePolicy(const std::vector<std::filesystem::path>& folders,
                                                const std::string& name);

// Names of all policies in these folders, sorted.
std::vector<std::string> RuntimePolicyNames(const std::vector<std::filesystem::path>& folders);

// Whether the policy puts `package` into each runtime: its base names it, whatever the version.
bool Brings(const RuntimePolicy& policy, absl::string_view package);

}  // namespace bkm

#endif  // HARNESS_RUNTIME_RUNTIME_POLICY_H_
