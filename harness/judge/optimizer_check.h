// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_OPTIMIZER_CHECK_H_
#define HARNESS_JUDGE_OPTIMIZER_CHECK_H_

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/judge/check_result.h"
#include "harness/judge/step_files.h"
#include "harness/model/observation.h"
#include "harness/model/probe.h"

namespace bkm {

struct CaseFile;  // case_file.h

// Judges the optimizer alone, from the observed gradients and parameters, at the stage `step`. The
// golden's updates would be a poor standard: AdamW's first step is little more than a sign, so it
// hides the size of a gradient and is noisy where a gradient is near 0. Three checks, in this
// order:
// 1. Settings: the parameters are kept in `parameter_type`, bf16 or fp32 (precision-ignored). The
//    learning rate of every parameter group is LearningRateAt that step (learning-rate-off). Betas,
//    epsilon and weight decay are the asked ones in every group (override-ignored): nothing asks
//    for parameters without decay.
// 2. Clipping: the norm over all observed gradients is what clipping the reported norm leaves
//    (clipping-off), to 1e-3 (2^-6 if parameters are kept in bf16) and twice the error that torch's
//    own sum of the norm has. If not all of the model's gradients were observed, a smaller norm
//    proves nothing: `unseen` says which, as a clause.
// 3. Updates: AdamW in fp64, from the observed gradients, moments carried from step to step, and
//    the observed parameter before a step, must give the observed parameter after it (update-off).
//    Allowed are the roundings of the type that holds the parameters (fp32, or bf16 if every
//    sampled parameter is a bf16 number) and of fp32 arithmetic. Parameters must not change between
//    steps.
CheckResult CheckOptimizer(const OptimizerSettings& asked, std::span<const ObservedStep> reported,
                           std::span<const StepTensors> tensors,
                           const std::string& parameter_type = "fp32",
                           const std::string& unseen = "");

// What AdamW makes of one tensor's sampled parameters in one step, from what was observed up to it.
// The same of these steps of a cell, which may be others than it trained.
CheckResult CheckOptimizerOf(const CaseFile& file, std::span<const ObservedStep> reported,
                             const std::vector<StepTensors>& steps);

// Facts of CheckOptimizer for readers. Its evidence holds more.
struct OptimizerFacts {
  struct Update {
    std::string tensor;
    std::optional<int64_t> step;                    // from 0
    std::optional<double> before, expected, after;  // an element of the parameter
    std::optional<double> tolerances;               // of its distance; absent: infinitely many
  };
  std::optional<Update> worst_update;
};
void Describe(Fields& fields, OptimizerFacts& facts);

struct ExpectedUpdate {
  std::vector<double> expected;
  std::vector<bool> is_right;  // whether the cell has it, within the tolerance of CheckOptimizer
};
// By tensor; tensors that were not observed in every step up to `step` are left out.
std::map<std::string, ExpectedUpdate> ExpectedUpdates(const OptimizerSettings& asked,
                                                      std::span<const ObservedStep> reported,
                                                      std::span<const StepTensors> steps,
                                                      size_t step);

}  // namespace bkm

#endif  // HARNESS_JUDGE_OPTIMIZER_CHECK_H_
