// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_HISTORY_TRIAL_CELLS_H_
#define HARNESS_HISTORY_TRIAL_CELLS_H_

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "harness/runner/preparation.h"
#include "harness/search/history_axis.h"
#include "harness/search/trial.h"

namespace bkm {

// Another cell for a commit than the axis gives it. NotFound where there is none.
using CellAtCommit = std::function<absl::StatusOr<PlannedCell>(int commit)>;

// The cells of a search's trials, each in the runtime that the trial asks for.
class TrialCells {
 public:
  // With `cell_at`, which may be null, every cell runs in the runtime that its trial asks for,
  // whatever the commit's declared pins say.
  TrialCells(const HistoryAxis& axis, Preparation& preparation, CellAtCommit cell_at)
      : axis_(axis), preparation_(preparation), cell_at_(std::move(cell_at)) {}

  // The trial's cell. NotFound and InvalidArgument say why the commit can have none; that says
  // nothing about the pair.
  absl::StatusOr<PreparedCell> Prepare(const Trial& trial);
  // The runtime of the commit's own cell; null where its requirements have no solution.
  absl::StatusOr<const RuntimeLock*> LockOf(int commit);
  // The lock with this key, out of those that were used; null: none.
  const RuntimeLock* FindLock(const std::string& key) const;

 private:
  const HistoryAxis& axis_;
  Preparation& preparation_;
  const CellAtCommit cell_at_;
  std::map<int, std::optional<RuntimeLock>> locks_;  // by commit
};

}  // namespace bkm

#endif  // HARNESS_HISTORY_TRIAL_CELLS_H_
