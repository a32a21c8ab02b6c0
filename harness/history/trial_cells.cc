// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/history/trial_cells.h"

#include <variant>

#include "harness/base/status_macros.h"

namespace bkm {

absl::StatusOr<PreparedCell> TrialCells::Prepare(const Trial& trial) {
  PlannedCell planned = axis_.CellAt(trial.commit);
  if (cell_at_) {
    ASSIGN_OR_RETURN(planned, cell_at_(trial.commit));
  }
  const RuntimeLock* lock = nullptr;
  if (trial.runtime_of >= 0 && (cell_at_ || trial.runtime_of != trial.commit)) {
    ASSIGN_OR_RETURN(lock, LockOf(trial.runtime_of));
    if (lock && !trial.forced && !cell_at_) {
      ASSIGN_OR_RETURN(const bool allowed, preparation_.Allows(planned, *lock));
      if (!allowed) lock = nullptr;
    }
  }
  if (lock) planned.cell.lock = lock->Key().substr(0, 12);
  const std::string first = CellId(planned.cell);
  planned.cell.repeat = trial.run;
  planned.id = CellId(planned.cell);
  absl::StatusOr<PreparedCell> prepared =
      lock ? preparation_.PrepareIn(planned, *lock) : preparation_.Prepare(planned);
  RETURN_IF_ERROR(prepared.status());
  // Keep the commit's own lock, so that FindLock knows it.
  if (!lock) RETURN_IF_ERROR(LockOf(trial.commit).status());
  if (trial.run > 1) {
    prepared->record.role = CellRole::kRepeat;
    prepared->record.repeat_of = first;
  }
  return prepared;
}

absl::StatusOr<const RuntimeLock*> TrialCells::LockOf(int commit) {
  const auto known = locks_.find(commit);
  if (known != locks_.end()) return known->second ? &*known->second : nullptr;
  ASSIGN_OR_RETURN(const auto resolved, preparation_.LockOf(axis_.CellAt(commit)));
  const auto* lock = std::get_if<RuntimeLock>(&resolved);
  std::optional<RuntimeLock>& kept = locks_[commit];
  if (lock) kept = *lock;
  return kept ? &*kept : nullptr;
}

const RuntimeLock* TrialCells::FindLock(const std::string& key) const {
  for (const auto& [commit, lock] : locks_) {
    if (lock && lock->Key() == key) return &*lock;
  }
  return nullptr;
}

}  // namespace bkm
