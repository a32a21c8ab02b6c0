// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_JUDGING_H_
#define HARNESS_RUNNER_JUDGING_H_

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "harness/judge/drift.h"
#include "harness/judge/reference_data.h"
#include "harness/model/cell_record.h"
#include "harness/runner/run_directory.h"

namespace bkm {

// Judges the cells of a run from the files of its directory alone; runs nothing. Goldens and floors
// are read once.
class RunJudge {
 public:
  explicit RunJudge(const RunDirectory& directory) : directory_(directory) {}

  // Absent: the cell was not measured. The control for blame is looked up among the cells of `run`.
  absl::StatusOr<std::optional<Verdict>> JudgeCell(const RunRecord& run, const CellRecord& cell);

  // Judges every cell afresh and writes verdicts, run.json and table.md. A cell with repeats is
  // judged together with them. `interrupted`: a golden or floor that is not there would still have
  // been made, and what cannot be judged without it has no verdict yet.
  absl::Status JudgeRun(RunRecord& run, bool interrupted = false);

  // How the numbers of `cell` differ from those of another run of it, whose step files lie in
  // `before` under the names that they have in the cell's folder.
  absl::StatusOr<Drift> DriftBetween(const CellRecord& cell, const std::filesystem::path& before);

 private:
  absl::StatusOr<std::optional<Verdict>> JudgeWith(const CellRecord& cell,
                                                   const CellRecord* control,
                                                   bool interrupted = false);
  void JudgeTogether(const RunRecord& run, CellRecord& cell);
  const ReferenceData* EvidenceFor(const Probe& probe, const std::string& precision);

  const RunDirectory& directory_;
  std::map<std::string, std::unique_ptr<ReferenceData>> evidence_;  // by probe and precision
};

}  // namespace bkm

#endif  // HARNESS_RUNNER_JUDGING_H_
