// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SESSION_RECORDED_CELL_H_
#define HARNESS_SESSION_RECORDED_CELL_H_

#include "absl/status/statusor.h"
#include "harness/matrix/matrix.h"
#include "harness/matrix/plan.h"
#include "harness/model/cell_record.h"
#include "harness/runner/preparation.h"
#include "harness/runner/run_directory.h"
#include "harness/runner/task.h"

namespace bkm {

// A cell of an earlier run, made ready again from run.json, the run's locks and this machine's
// cache. The run may come from anyone, so the paths in its requests are not read.

// The matrix of a run, as far as its cells need it: its name and limits. FailedPrecondition if the
// run does not say its limits.
absl::StatusOr<Matrix> MatrixOfRun(const RunDirectory& directory);

// As it was planned, with the reason if no process was started for it.
absl::StatusOr<PlannedCell> PlanAgain(const RunDirectory& directory, const CellRecord& record);

// In the lock that it has in the run.
absl::StatusOr<PreparedCell> PrepareAgain(const RunDirectory& directory, const CellRecord& record,
                                          const PlannedCell& planned, Preparation& preparation);

}  // namespace bkm

#endif  // HARNESS_SESSION_RECORDED_CELL_H_
