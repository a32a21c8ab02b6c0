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

// Observations of all runs of this machine. One stands for a cell when the cell asks the same
// (probe, limits, runtime lock, our own code inside the cell, CPU) and everything that the measured
// one looked at in the trees of its subjects is the same in the cell's trees; so it answers for
// other commits too. Only a cell whose record of what it looked at misses nothing is kept, and none
// with a path subject, a planted fault, or a repeat, which is there to be measured.
class ObservationStore {
 public:
  // `root` is a folder of the cache. `cpu` names what of the machine decides the last bits.
  static absl::StatusOr<std::unique_ptr<ObservationStore>> Open(const std::filesystem::path& root,
                                                                TaskSettings settings,
                                                                std::string cpu);

  // What stands for `cell`; nullopt when nothing does.
  absl::StatusOr<std::optional<KeptObservation>> Find(const PreparedCell& cell);

  // Keeps what was measured in `dir`, if it may stand for others. An equal one that is there
  // already stays.
  absl::Status Keep(const PreparedCell& cell, const Json& observation,
                    const std::filesystem::path& dir);

  // A cell that was seen to vary stands for nothing: forgets what Find(cell) gives.
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
