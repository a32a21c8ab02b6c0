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
#include "harness/model/ending.h"
#include "harness/model/subject.h"
#include "harness/runtime/runtime_lock.h"
#include "harness/runtime/runtime_policy.h"
#include "harness/source/package_metadata.h"
#include "harness/source/source_builds.h"
#include "harness/source/source_catalog.h"
#include "harness/source/uv.h"

namespace bkm {

// The subjects and settings that a runtime is resolved for.
struct RuntimeRequest {
  RuntimePolicy policy;
  std::string torch;                // from the torch axis; empty: the policy's
  const Subject* engine = nullptr;  // null for a control
  const Subject* library = nullptr;
  std::vector<std::string> extra;  // further requirements: "transformers" for an unpinned library
  std::vector<std::string> relax;  // packages whose pins are dropped
};

// The requirements contradict each other or cannot be met: a verdict on the pairing, not an error.
struct NoSolution {
  std::string message;         // one line: the resolver's message and which subject declares what
  std::string complaint = {};  // the resolver's message alone
  // How the cells end: also kInstallFailed (a package does not build) and kTimedOut.
  EndingKind ending = EndingKind::kNoSolution;
};

// The message for the subjects of `request`, whose requirements the resolver complains about.
NoSolution NoSolutionOf(const RuntimeRequest& request, const std::string& complaint);

// Turns requests into locks. Resolves equal requests once and keeps the locks in the cache.
// Thread-safe.
class RuntimeResolver {
 public:
  struct Options {
    std::filesystem::path cache;
    std::filesystem::path python;   // must be the version that runs the cells
    std::chrono::sys_days today{};  // for tests; the default means the system's date
    // Takes a sentence about a damaged part of the cache, which is made again.
    std::function<void(const std::string&)> report = [](const std::string&) {};
  };
  RuntimeResolver(const SourceCatalog& catalog, Uv uv, Options options);

  // FailedPrecondition: not even the runtime's base can be resolved on this machine, or the
  // interpreter does not fit the policy. Unavailable: network. The message is one sentence that
  // says what to do.
  absl::StatusOr<std::variant<RuntimeLock, NoSolution>> Resolve(const RuntimeRequest& request);

  // What Resolve returns, if it needs no resolver: a lock in the cache, or a runtime that is given.
  absl::StatusOr<std::optional<RuntimeLock>> Find(const RuntimeRequest& request);

  // Requests with equal keys have equal locks, or the same complaint and no solution. Runs nothing.
  std::string KeyOf(const RuntimeRequest& request) const;

  // Whether `lock` meets the requirements that the request's subjects declare, except the dropped
  // pins. Always true for a locked or existing runtime, which is not resolved for its subjects.
  absl::StatusOr<bool> Allows(const RuntimeRequest& request, const RuntimeLock& lock) const;

  // The requirements that the request's subjects declare, except those for source trees, such as
  // each other: these are on the cell's path and not in the runtime.
  std::vector<std::string> DeclaredRequirements(const RuntimeRequest& request) const;

 private:
  struct Input;  // everything that a resolution depends on
  absl::StatusOr<Input> InputOf(const RuntimeRequest& request);
  // Adds to `input` the packages whose pins are dropped, and the overrides that replace the pins.
  static void Relax(const RuntimeRequest& request, Input& input);
  absl::StatusOr<RuntimeLock> ReadLocked(const RuntimePolicy& policy);
  absl::StatusOr<RuntimeLock> ReadExisting(const RuntimePolicy& policy) const;
  // Name and version of every package that the registry's own build of `torch` requires.
  absl::StatusOr<std::map<std::string, std::string>> BroughtByTorch(const std::string& torch) const;
  std::filesystem::path BroughtFile(const std::string& torch) const;
  std::filesystem::path LockFile(const Input& input) const;
  // Aborted: a package does not build.
  absl::StatusOr<SourceBuilds::Resolved> Compile(const Input& input,
                                                 const std::vector<std::string>& requirements,
                                                 bool offline = false) const;
  // As Compile, until two answers in a row are equal, or four were given: then the last. uv decides
  // packages in the order in which it hears of them, so that with a cold cache the answer depends
  // on the registry's speed.
  absl::StatusOr<SourceBuilds::Resolved> CompileUntilSettled(
      const Input& input, const std::vector<std::string>& requirements) const;
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
  const SourceBuilds builds_;
  std::mutex mutex_;
  std::optional<std::string> python_version_;
};

// The normalised package name at the start of a PEP 508 requirement.
std::string RequirementName(absl::string_view requirement);

}  // namespace bkm

#endif  // HARNESS_RUNTIME_RUNTIME_RESOLVER_H_
