// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_JUDGE_H_
#define HARNESS_JUDGE_JUDGE_H_

#include <filesystem>
#include <string>
#include <vector>

#include "harness/judge/blame.h"
#include "harness/judge/option_effect.h"
#include "harness/judge/reference_data.h"
#include "harness/model/observation.h"
#include "harness/model/probe.h"
#include "harness/model/verdict.h"

namespace bkm {

// Everything that a verdict depends on. Pointers are borrowed and may be null where noted.
struct JudgeInput {
  Probe probe;
  Packages packages;  // packages.engine is empty in a control cell
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

// The precision that the cell ran, whatever was asked. Its floor judges the cell.
std::string PrecisionOf(const Observation& observation, const Probe& probe);

// Precedence: a cell that did not finish is classed by its ending (ending.h), with earlier
// mismatches as evidence. A cell that finished is `wrong` if a check fails; of several that fail,
// the verdict names the one that explains most, and Verdict::failures has all of them. Else
// `unsupported` at the first stage whose facts are missing or unreadable; else `ok`. The evidence
// holds the numbers that every check compared, under "checks". Reads only the cell's step files.
Verdict Judge(const JudgeInput& input);

}  // namespace bkm

#endif  // HARNESS_JUDGE_JUDGE_H_
