// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_CASE_FILE_H_
#define HARNESS_JUDGE_CASE_FILE_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/judge/blame.h"
#include "harness/judge/check_result.h"
#include "harness/judge/option_effect.h"
#include "harness/judge/reference_data.h"
#include "harness/judge/step_files.h"
#include "harness/model/observation.h"
#include "harness/model/probe.h"
#include "harness/model/verdict.h"

namespace bkm {

// Everything that a verdict depends on. Pointers are borrowed and may be null where noted.
struct JudgeInput {
  Probe probe;
  Packages packages;                // packages.engine is empty in a control cell
  bool trainer_drops_last = false;  // EngineKind::drops_last
  const Observation* observation = nullptr;
  std::filesystem::path cell_dir;            // holds the step files that the observation names
  const ReferenceData* reference = nullptr;  // null only if the cell did not finish
  // The control cell: the same library, runtime and probe without the engine. If null, a cell with
  // an engine gets no blame.
  const Observation* control = nullptr;
  const Verdict* control_verdict = nullptr;
  const Json* lines = nullptr;         // of the subjects that ran; null if nobody recorded them
  std::vector<OptionTwin> twins = {};  // one for each engine option of the probe
};

// What a claim is checked against.
struct CaseFile {
  const JudgeInput& input;
  const absl::StatusOr<std::vector<StepTensors>>& steps;  // not read of a cell that stopped
  bool has_finished = true;  // else only what it did wrong before it stopped counts
  // Which of the rungs after training the cell came to.
  bool has_exported = true, has_resumed = true;

  const Observation& seen() const { return *input.observation; }
  const Probe& probe() const { return input.probe; }
  const ReferenceData& reference() const { return *input.reference; }  // of a cell that finished
};

// The precision that the cell ran, whatever was asked. Its floor judges the cell.
std::string PrecisionOf(const Observation& observation, const Probe& probe);

// Whose floors judge the cell: first the one that it ran.
std::vector<std::string> FloorsFor(const Observation& observation, const Probe& probe);

absl::StatusOr<const std::vector<FloorStep>*> FloorOf(const JudgeInput& input,
                                                      const std::string& precision);
// Of the precision that the cell ran.
absl::StatusOr<const std::vector<FloorStep>*> FloorOf(const JudgeInput& input);
// The lengths of the documents of each training step; none where the probe cannot be read.
std::vector<std::vector<int64_t>> DocumentsOf(const CaseFile& file);
// The result of a check whose golden or floor cannot be read.
CheckResult WithoutReference(Stage stage, const absl::Status& status);

}  // namespace bkm

#endif  // HARNESS_JUDGE_CASE_FILE_H_
