// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNTIME_ENVIRONMENT_CREATOR_H_
#define HARNESS_RUNTIME_ENVIRONMENT_CREATOR_H_

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "harness/runtime/runtime_lock.h"
#include "harness/source/source_builds.h"
#include "harness/source/uv.h"
#include "harness/store/folder_cache.h"

namespace bkm {

// Creates the virtual environment of a lock, once for each lock key and interpreter. Thread-safe.
class EnvironmentCreator {
 public:
  // `python` is the interpreter that the worker embeds. Environments link to it.
  EnvironmentCreator(Uv uv, std::filesystem::path cache, std::filesystem::path python)
      : uv_(std::move(uv)),
        python_(std::move(python)),
        builds_(uv_, cache, python_),
        environments_(cache / "environments") {}

  // Returns the environment's python, or the interpreter itself for an existing runtime. Errors are
  // one sentence that says what to do: Unavailable (network), ResourceExhausted (disk), Aborted
  // when a package does not build or is broken, which is a fault of the lock and not of the
  // machine.
  absl::StatusOr<std::filesystem::path> Create(const RuntimeLock& lock) const;

  // What Create returns, if it has nothing to do.
  std::optional<std::filesystem::path> Find(const RuntimeLock& lock) const;

  const FolderCache& environments() const { return environments_; }

 private:
  std::string KeyOf(const RuntimeLock& lock) const;
  absl::Status Fill(const RuntimeLock& lock, const std::filesystem::path& folder) const;

  const Uv uv_;
  const std::filesystem::path python_;
  const SourceBuilds builds_;
  const FolderCache environments_;
  // Environments are installed one after the other: uv gets the packages of one at once, and two at
  // a time would each fetch and unpack the packages that they share. Nor are they compiled at once:
  // a second one links what the first compiled.
  mutable std::mutex installing_;
  mutable std::mutex compiling_;
};

}  // namespace bkm

#endif  // HARNESS_RUNTIME_ENVIRONMENT_CREATOR_H_
