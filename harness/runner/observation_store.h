// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_OBSERVATION_STORE_H_
#define HARNESS_RUNNER_OBSERVATION_STORE_H_

#include <filesystem>
#include <functional>
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
// same probe, limits, runtime lock, code of ours inside the cell and CPU, and
// - if the worker recorded from outside what the measured cell looked at in its subjects' trees:
//   everything in this record is the same in the other cell's trees, so it can stand for other
//   commits, too;
// - otherwise only if both trees are equal, file by file.
// What a cell reports about itself is never used: a subject can forge it. Cells that did not end by
// themselves or have a path subject or a planted fault are not stored, nor are repeats, which must
// be measured. A stored file that was damaged since is set aside, and the cell is measured again.
class ObservationStore {
 public:
  // `root` is a folder of the cache. `cpu` identifies the CPU features that affect the last bits.
  // `report` takes a sentence about an entry that was damaged.
  static absl::StatusOr<std::unique_ptr<ObservationStore>> Open(
      const std::filesystem::path& root, TaskSettings settings, std::string cpu,
      std::function<void(const std::string&)> report = nullptr);

  // The observation that stands for `cell`, if there is one.
  absl::StatusOr<std::optional<KeptObservation>> Find(const PreparedCell& cell);

  // Stores the observation in the cell's folder `dir` if it may stand for others. An equal one that
  // is stored already stays. `observed` is null, or what the worker saw from outside the cell.
  absl::Status Keep(const PreparedCell& cell, const CellFacts& facts, const Json& observed,
                    const std::filesystem::path& dir);

  // Removes `kept`, which Find returned and which proved wrong.
  absl::Status Discard(const KeptObservation& kept);

  // Removes what Find(cell) returns: a flaky cell must stand for nothing.
  absl::Status Forget(const PreparedCell& cell);

  // What Open did about a damaged index, for people; empty when the index was sound.
  const std::string& set_aside() const { return index_.set_aside(); }

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
  std::function<void(const std::string&)> report_;  // may be null
};

}  // namespace bkm

#endif  // HARNESS_RUNNER_OBSERVATION_STORE_H_
