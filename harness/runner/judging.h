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

// Judges the cells of a run by the files in its directory alone, and runs nothing. Reads each
// golden and floor once.
class RunJudge {
 public:
  explicit RunJudge(const RunDirectory& directory) : directory_(directory) {}

  // Absent if the cell was not measured. The control for blame is one of the cells of `run`.
  // `incomplete`: goldens and floors may be missing because they are being made or the run was
  // stopped, and a cell that cannot be judged without them gets no verdict.
  absl::StatusOr<std::optional<Verdict>> JudgeCell(const RunRecord& run, const CellRecord& cell,
                                                   bool incomplete = false);

  // Judges every cell anew and writes verdicts, run.json and table.md. A cell is judged together
  // with its repeats.
  absl::Status JudgeRun(RunRecord& run, bool incomplete = false);
  // run.json and table.md, of verdicts that are known.
  absl::Status WriteResults(const RunRecord& run);

  // How the numbers of `cell` differ from those of another run of it. The step files in the folder
  // `before` have the same names as those in the cell's folder.
  absl::StatusOr<Drift> DriftBetween(const CellRecord& cell, const std::filesystem::path& before);

 private:
  // Cells of the run that speak of another one.
  struct Beside {
    const CellRecord* control = nullptr;
    std::map<std::string, const CellRecord*> twins = {};  // by engine option
  };
  static Beside BesideOf(const RunRecord& run, const CellRecord& cell);
  absl::StatusOr<std::optional<Verdict>> JudgeWith(const CellRecord& cell, const Beside& beside,
                                                   bool incomplete = false);
  // DataLoss when the cell's evidence is not what was written.
  absl::Status Verify(const CellRecord& cell);
  void JudgeTogether(const RunRecord& run, CellRecord& cell);
  const ReferenceData* EvidenceFor(const Probe& probe, const std::vector<std::string>& precisions);

  const RunDirectory& directory_;
  std::map<std::string, std::unique_ptr<ReferenceData>> evidence_;  // by floor
  // The times of the manifests whose folders were verified.
  std::map<std::filesystem::path, std::filesystem::file_time_type> verified_;
};

}  // namespace bkm

#endif  // HARNESS_RUNNER_JUDGING_H_
