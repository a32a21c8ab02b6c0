// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_JUDGING_H_
#define HARNESS_RUNNER_JUDGING_H_

#include "absl/status/statusor.h"
#include "harness/model/cell_record.h"
#include "harness/runner/run_directory.h"

namespace bkm {

// The verdict on one cell of a run, from the files of the run directory alone. Absent: the cell was
// not measured. The control for blame is looked up among the cells of `run`.
absl::StatusOr<std::optional<Verdict>> JudgeCell(const RunDirectory& directory,
                                                 const RunRecord& run, const CellRecord& cell);

// Judges every cell afresh and writes verdicts, run.json and table.md. Runs nothing.
absl::Status JudgeRun(const RunDirectory& directory, RunRecord& run);

}  // namespace bkm

#endif  // HARNESS_RUNNER_JUDGING_H_
