// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_JUDGE_H_
#define HARNESS_JUDGE_JUDGE_H_

#include <filesystem>
#include <string>

#include "harness/judge/blame.h"
#include "harness/judge/reference_data.h"
#include "harness/model/observation.h"
#include "harness/model/probe.h"
#include "harness/model/verdict.h"

namespace bkm {

// Everything that a verdict depends on. All pointers are borrowed and may be null where noted.
struct JudgeInput {
  Probe probe;
  Packages packages;  // packages.engine is empty in a control cell
  const Observation* observation = nullptr;
  std::filesystem::path cell_dir;            // holds the step files that the observation names
  const ReferenceData* reference = nullptr;  // null only if the cell did not finish
  // The control cell: the same library, runtime and probe without the engine. Null: none was run,
  // and blame stays empty for a cell with an engine.
  const Observation* control = nullptr;
  const Verdict* control_verdict = nullptr;
};

// The precision whose floor judges the cell: the one it ran, whatever was asked.
std::string PrecisionOf(const Observation& observation, const Probe& probe);

// Precedence: a cell that did not finish is classed by its ending (ending.h), with the mismatches
// seen before as evidence. One that finished is `wrong` at the first rung whose check fails; else
// `unsupported` at the first rung whose facts are missing or unreadable; else `ok`. The evidence
// holds what every check compared, under "checks". Reads the cell's step files, nothing else.
Verdict Judge(const JudgeInput& input);

}  // namespace bkm

#endif  // HARNESS_JUDGE_JUDGE_H_
