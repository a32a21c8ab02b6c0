// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_DATA_CHECK_H_
#define HARNESS_JUDGE_DATA_CHECK_H_

#include <vector>

#include "harness/judge/check_result.h"
#include "harness/judge/step_files.h"
#include "harness/numerics/packed_batch.h"

namespace bkm {

// How far the weight of a label may be from its share, relative. bf16 reads a weight to 0.5 %.
inline constexpr double kWeightTolerance = 0.02;

// Whether a trainer gave the model, in each step, every document of the data file once, in any
// order, and trained what counts in it, shifted by one, each token with the same weight: one over
// the number of tokens that count in the step. `expected` has one batch for each step. The
// outcomes:
// - documents-off: a document did not reach the model as data file and template make it.
// - labels-off: a document's place is trained to predict another token than its next one, or is
//   (not) trained though it does (not) count.
// - loss-weights-off: a label's weight is not its share.
// - unseen: a step without a batch.
CheckResult CheckData(const std::vector<StepTensors>& steps,
                      const std::vector<PackedBatch>& expected);

}  // namespace bkm

#endif  // HARNESS_JUDGE_DATA_CHECK_H_
