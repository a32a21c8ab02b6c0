// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_NUMBERS_CHECK_H_
#define HARNESS_JUDGE_NUMBERS_CHECK_H_

#include <span>
#include <vector>

#include "harness/judge/check_result.h"
#include "harness/judge/step_files.h"
#include "harness/model/observation.h"
#include "harness/numerics/packed_batch.h"

namespace bkm {

// A quantity may be this many times its floor away from the golden. One constant for the whole
// project; README.md derives it.
inline constexpr double kFloorMultiple = 4;

// What torch's own reduction costs a total norm, relative: a sum of squares over half a million
// fp32 elements. Measured on right fp32 cells on a CPU: 1.8e-5. Clipping passes it on to every
// gradient. No floor of a norm or a gradient is below it.
inline constexpr double kNormReduction = 2.5e-5;

// A quantity that is compared: its key in the check's evidence, its name for readers (where it is
// kept as the worst of many, `over` goes on to say so: ", worst tensor"), what a failure's message
// begins with, and the failure's reason.
struct NumbersQuantity {
  const char* key;
  const char* name;
  const char* over;
  const char* subject;
  const char* reason;
};
std::vector<NumbersQuantity> NumbersQuantities();

// `error` in floors. No error is none whatever the floor; any other is infinitely far from a floor
// of 0.
double InFloors(double error, double floor);

// What a cell and the reference say of the same steps; all spans have one element per step.
struct NumbersInput {
  std::span<const ObservedStep> reported;
  std::span<const StepTensors> tensors;
  std::span<const PackedBatch> batches;
  std::span<const GoldenStep> golden;
  std::span<const FloorStep> floor;
};

// Compares, per step: log-probs (mean, 99 % quantile and maximum of |difference| over judged
// tokens), loss, total gradient norm, and per tensor the sampled gradient and the norm of the
// whole. The cases:
// - Log-probs of another length than the batch, or samples of another length than the golden's:
//   wrong-shape, at forward or backward.
// - NaN or infinity in a log-prob of a judged token or in the loss: not-finite at forward; in a
//   gradient or its norm: not-finite at backward. The last position of each document has no label
//   and may hold anything.
// - A step, the log-probs, the loss, the norm or a tensor's gradient that was not reported: unseen.
// - Beyond kFloorMultiple times the floor: wrong at golden. Named is what came first: of the first
//   step that is off, the first of log-probs-off, loss-off, gradients-off and grad-norm-off that
//   holds; what follows may only be its effect. A floor of 0 allows only the golden.
CheckResult CheckNumbers(const NumbersInput& input);

}  // namespace bkm

#endif  // HARNESS_JUDGE_NUMBERS_CHECK_H_
