// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_OPTIMIZER_CHECK_H_
#define HARNESS_JUDGE_OPTIMIZER_CHECK_H_

#include <span>

#include "harness/judge/check_result.h"
#include "harness/judge/step_files.h"
#include "harness/model/observation.h"
#include "harness/model/probe.h"

namespace bkm {

// The optimizer by itself, on what the cell observed, at the rung `step`. The golden's updates
// would be a poor judge: AdamW's first step is little more than a sign, blind to the size of a
// gradient and noisy where one is near 0. Three checks, in this order:
// 1. Settings: the learning rate of every parameter group is LearningRateAt that step
// (learning-rate-off);
//    betas, epsilon and weight decay are the asked ones in at least one group (override-ignored):
//    a library may rightly exempt some parameters from decay.
// 2. Clipping: the norm over all observed gradients is not larger than what clipping the reported
//    norm leaves (clipping-off). Where it is smaller, a gradient is missing or too small, and which
//    one the golden's gradients say.
// 3. Updates: AdamW in fp64 from the observed gradients, its moments carried from step to step,
//    and from the observed parameter before a step, gives the observed parameter after it, up to
//    the roundings of the type that holds the parameters (fp32, or bf16 when every sampled
//    parameter is a bf16 number) and of fp32 arithmetic. The group that explains a tensor best is
//    taken for its own. And no parameter moves between two steps.
CheckResult CheckOptimizer(const OptimizerSettings& asked, std::span<const ObservedStep> reported,
                           std::span<const StepTensors> tensors);

}  // namespace bkm

#endif  // HARNESS_JUDGE_OPTIMIZER_CHECK_H_
