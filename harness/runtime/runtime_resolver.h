// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNTIME_RUNTIME_RESOLVER_H_
#define HARNESS_RUNTIME_RUNTIME_RESOLVER_H_

#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/model/subject.h"
#include "harness/runtime/runtime_lock.h"
#include "harness/runtime/runtime_policy.h"
#include "harness/source/package_metadata.h"
#include "harness/source/source_catalog.h"
#include "harness/source/uv.h"

namespace bkm {

// What a runtime is for.
struct RuntimeRequest {
  RuntimePolicy policy;
  std::string torch;                // of the torch axis; empty: the policy's
  const Subject* engine = nullptr;  // null for a control
  const Subject* library = nullptr;
  std::vector<std::string> extra;  // more requirements, as "transformers" for an unpinned library
  std::vector<std::string> relax;  // packages whose pins are dropped
};

// The requirements contradict each other: a verdict on the pairing, not an error.
struct NoSolution {
  std::string message;         // the resolver's words and who declares what, in one line
  std::string complaint = {};  // the resolver's words alone
};

// The message for the subjects of `request`, whose requirements the resolver complains about.
NoSolution NoSolutionOf(const RuntimeRequest& request, const std::string& complaint);

// Turns requests into locks. Equal requests are resolved once and kept in the cache. Thread-safe.
class RuntimeResolver {
 public:
  struct Options {
    std::filesystem::path cache;
    std::filesystem::path python;   // of the version that runs the cells
    std::chrono::sys_days today{};  // for tests; the default is the system's date
  };
  RuntimeResolver(const SourceCatalog& catalog, Uv uv, Options options);

  // FailedPrecondition: not even the runtime's base can be resolved here, or the interpreter does
  // not fit the policy. Unavailable: network. The message is one sentence with what to do.
  absl::StatusOr<std::variant<RuntimeLock, NoSolution>> Resolve(const RuntimeRequest& request);

  // What Resolve returns, if it needs no resolver: a lock in the cache, or a runtime that is given.
  absl::StatusOr<std::optional<RuntimeLock>> Find(const RuntimeRequest& request);

  // Requests with equal keys have equal locks, or the same complaint and no solution. Runs nothing.
  std::string KeyOf(const RuntimeRequest& request) const;

  // Whether what the request's subjects declare can be had from `lock` as it is, without the pins
  // that are dropped. A runtime that is given, and not resolved, suits everybody.
  absl::StatusOr<bool> Allows(const RuntimeRequest& request, const RuntimeLock& lock) const;

  // What the request's subjects declare of the runtime, without each other and other source trees.
  std::vector<std::string> DeclaredRequirements(const RuntimeRequest& request) const;

 private:
  struct Input;  // everything a resolution depends on
  absl::StatusOr<Input> InputOf(const RuntimeRequest& request);
  absl::StatusOr<RuntimeLock> ReadLocked(const RuntimePolicy& policy);
  absl::StatusOr<RuntimeLock> ReadExisting(const RuntimePolicy& policy) const;
  // Name and version of everything that the registry's own build of `torch` brings along.
  absl::StatusOr<std::map<std::string, std::string>> BroughtByTorch(const std::string& torch) const;
  std::filesystem::path BroughtFile(const std::string& torch) const;
  std::filesystem::path LockFile(const Input& input) const;
  absl::StatusOr<ProcessResult> Compile(const Input& input,
                                        const std::vector<std::string>& requirements) const;
  absl::StatusOr<std::variant<RuntimeLock, NoSolution>> Explain(const RuntimeRequest& request,
                                                                const Input& input,
                                                                const ProcessResult& failed) const;
  absl::StatusOr<std::string> PythonVersion();
  std::string CutoffOf(const RuntimeRequest& request) const;
  std::string Tomorrow() const;

  const SourceCatalog& catalog_;
  const Uv uv_;
  const Options options_;
  const PackageReader reader_;
  std::mutex mutex_;
  std::optional<std::string> python_version_;
};

// The normalised package name at the start of a PEP 508 requirement.
std::string RequirementName(absl::string_view requirement);

}  // namespace bkm

#endif  // HARNESS_RUNTIME_RUNTIME_RESOLVER_H_
