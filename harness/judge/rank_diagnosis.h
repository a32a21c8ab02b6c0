// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_RANK_DIAGNOSIS_H_
#define HARNESS_JUDGE_RANK_DIAGNOSIS_H_

#include <string>
#include <vector>

#include "harness/judge/step_files.h"
#include "harness/model/observation.h"
#include "harness/model/probe.h"
#include "harness/numerics/probe_folder.h"

namespace bkm {

// A wrong cell of several ranks, and what it is compared with. `golden`, `floor` and `steps` have
// an element for each training step.
struct RankDiagnosisInput {
  const Probe& probe;
  const Observation& observation;
  const ProbeFolder& folder;
  const std::vector<GoldenStep>& golden;
  const std::vector<FloorStep>& floor;
  const std::vector<StepTensors>& steps;
};

struct RankDiagnosis {
  std::vector<std::string> clauses;  // for the verdict's message
  bool has_factors = false;          // a clause names the factor of each rank's gradients
  // The collectives that reduced the gradients: "all_reduce (sum) over 2 ranks". Empty if the
  // recorded ones do not tell.
  std::string reductions = {};
};

// What is wrong in terms of ranks: a shard of a weight, gradient or update; a rank's documents; a
// reduction that never ran. Of the first step that is off: later ones follow from it. Empty where
// the evidence does not decide.
RankDiagnosis DiagnoseRanks(const RankDiagnosisInput& input);

}  // namespace bkm

#endif  // HARNESS_JUDGE_RANK_DIAGNOSIS_H_
