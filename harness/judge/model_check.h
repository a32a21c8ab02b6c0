// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_MODEL_CHECK_H_
#define HARNESS_JUDGE_MODEL_CHECK_H_

#include "harness/judge/check_result.h"
#include "harness/model/observation.h"
#include "harness/numerics/model_shapes.h"

namespace bkm {

// Compares the model's own numbers, read back from what was built, with the configuration that it
// was built from (config-ignored at load): the epsilon of every norm, and base and frequencies of
// the rotary embedding. A model without any norm was not read (unseen). A table of frequencies that
// was not found is left to the comparison with the golden.
CheckResult CheckModel(const ObservedModel& built, const ModelShape& asked);

}  // namespace bkm

#endif  // HARNESS_JUDGE_MODEL_CHECK_H_
