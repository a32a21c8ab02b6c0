// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BUNDLE_WORK_RUNTIMES_H_
#define HARNESS_BUNDLE_WORK_RUNTIMES_H_

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "harness/bundle/packed_cells.h"
#include "harness/check/user_environment.h"
#include "harness/runner/runtime_provider.h"
#include "harness/source/source_catalog.h"

namespace bkm {

// The interpreters that packed cells run in on this machine: one that the user names, as it is, or
// environments that uv makes of the packed locks.
class WorkRuntimes {
 public:
  using Report = std::function<void(const std::string&)>;

  // `python`: the user's interpreter; empty: environments. FailedPrecondition if it cannot be run.
  static absl::StatusOr<std::unique_ptr<WorkRuntimes>> Create(const std::filesystem::path& python,
                                                              std::filesystem::path cell_worker,
                                                              std::string sandbox, Report report);

  // What the cell runs in. An error is one sentence that says why this machine cannot run it.
  absl::StatusOr<std::shared_ptr<const RuntimeLock>> LockFor(const PackedCell& cell,
                                                             const PackedCells& cells) const;
  // The worker of that lock. May make an environment, which takes minutes.
  absl::StatusOr<WorkerSetup> WorkerFor(const RuntimeLock& lock);

  // "3.11.2" of the user's interpreter; empty without one.
  std::string python_version() const { return user_ ? user_->version() : ""; }

 private:
  WorkRuntimes(std::filesystem::path cell_worker, std::string sandbox, Report report)
      : cell_worker_(std::move(cell_worker)),
        sandbox_(std::move(sandbox)),
        report_(std::move(report)) {}

  absl::StatusOr<std::filesystem::path> Environment(const RuntimeLock& lock);

  const std::filesystem::path cell_worker_;
  const std::string sandbox_;
  const Report report_;
  SourceCatalog catalog_;
  std::optional<UserEnvironment> user_;
  std::unique_ptr<UvRuntimeProvider> provider_;  // null until an environment is needed
  std::map<std::string, absl::StatusOr<WorkerSetup>> workers_;  // by key
};

}  // namespace bkm

#endif  // HARNESS_BUNDLE_WORK_RUNTIMES_H_
