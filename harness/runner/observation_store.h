// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_OBSERVATION_STORE_H_
#define HARNESS_RUNNER_OBSERVATION_STORE_H_

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "harness/runner/task.h"
#include "harness/source/closure.h"
#include "harness/store/folder_cache.h"
#include "harness/store/result_index.h"

namespace bkm {

// The observations of all runs on this machine. An observation stands for a cell if both have the
// same probe, limits, runtime lock, code of ours inside the cell and CPU, and if every file that
// the measured cell read in its subjects' trees is the same in the other cell's trees. So it can
// stand for other commits, too. A cell is stored only if its record of what it read is complete.
// Cells with a path subject or a planted fault are not stored, nor are repeats, which must be
// measured.
class ObservationStore {
 public:
  // `root` is a folder of the cache. `cpu` identifies the CPU features that affect the last bits.
  static absl::StatusOr<std::unique_ptr<ObservationStore>> Open(const std::filesystem::path& root,
                                                                TaskSettings settings,
                                                                std::string cpu);

  // The observation that stands for `cell`, if there is one.
  absl::StatusOr<std::optional<KeptObservation>> Find(const PreparedCell& cell);

  // Stores the observation in the cell's folder `dir` if it may stand for others. An equal one that
  // is stored already stays.
  absl::Status Keep(const PreparedCell& cell, const Json& observation,
                    const std::filesystem::path& dir);

  // Removes what Find(cell) returns: a flaky cell must stand for nothing.
  absl::Status Forget(const PreparedCell& cell);

 private:
  ObservationStore(const std::filesystem::path& root, TaskSettings settings, std::string cpu,
                   ResultIndex index)
      : folders_(root),
        settings_(std::move(settings)),
        cpu_(std::move(cpu)),
        index_(std::move(index)) {}

  std::string KeyOf(const PreparedCell& cell) const;
  absl::StatusOr<std::optional<std::string>> FolderFor(const PreparedCell& cell);

  const FolderCache folders_;
  const TaskSettings settings_;
  const std::string cpu_;
  ResultIndex index_;
};

}  // namespace bkm

#endif  // HARNESS_RUNNER_OBSERVATION_STORE_H_
