// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_NUMBERS_CHECK_H_
#define HARNESS_JUDGE_NUMBERS_CHECK_H_

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "harness/judge/check_result.h"
#include "harness/judge/diagnosis.h"
#include "harness/judge/sensitivity.h"
#include "harness/judge/step_files.h"
#include "harness/model/observation.h"
#include "harness/numerics/packed_batch.h"

namespace bkm {

struct CaseFile;  // case_file.h

// How many floors a quantity may be away from the golden. README.md derives it.
inline constexpr double kFloorMultiple = 4;

// The same for averages: the mean log-prob error of a step, and the norm of a tensor's gradient. In
// bf16 it is 2: they differ little between right cells. In fp32, where faults are far beyond any
// floor, it is kFloorMultiple.
double AverageMultiple(absl::string_view precision);

// The relative error of torch's own reduction of a total norm: a sum of squares over half a million
// fp32 elements. Right fp32 cells on a CPU show 1.8e-5. Clipping passes the error on to every
// gradient, so no floor of a norm or a gradient is below this value.
inline constexpr double kNormReduction = 2.5e-5;

// A compared quantity: its key in the check's facts, its name for readers, the subject of a
// failure's message, and the failure's reason. `over` completes the name where the quantity is the
// worst of many: ", worst tensor".
struct NumbersQuantity {
  const char* key;
  const char* name;
  const char* over;
  const char* subject;
  const char* reason;
};
std::vector<NumbersQuantity> NumbersQuantities();

// `error` in floors: 0 for no error, infinite for any other error over a floor of 0.
double InFloors(double error, double floor);

// The worst of one quantity over all steps.
struct QuantityFacts {
  std::optional<int64_t> step;  // from 0
  std::string tensor;
  std::optional<double> error, floor;
  std::optional<double> multiple;  // in floors; absent: infinitely many, the floor is 0
  std::optional<double> allowed;   // floors, where not kFloorMultiple
};
void Describe(Fields& fields, QuantityFacts& facts);

// The token whose log-prob is furthest off.
struct WorstToken {
  std::optional<int64_t> step, position, document, document_position;
  std::optional<double> error, golden;  // nats
};
void Describe(Fields& fields, WorstToken& token);

void Describe(Fields& fields, ReportTypes& types);

// Tensors whose gradients may be wrong by 100 %.
struct BlindGradients {
  int64_t tensors = 0;
  int64_t of = 0;
};
void Describe(Fields& fields, BlindGradients& blind);

// The facts of CheckNumbers. Older versions wrote some of them only.
struct NumbersFacts {
  std::optional<double> allowed_multiple;
  std::map<std::string, QuantityFacts> quantities;  // by NumbersQuantity::key
  std::optional<WorstToken> worst_token;
  std::optional<ReportTypes> reported_in_fp32;
  std::optional<double> least_log_probs_mean;  // the smallest error that is reported, nats
  std::optional<BlindGradients> blind_gradients;

  const QuantityFacts* Find(absl::string_view key) const;
};
void Describe(Fields& fields, NumbersFacts& facts);

// The forward that trains nothing (verl's infer_batch: the old and reference log-probs of PPO), of
// the batch of `step`, before any training.
struct ForwardOnly {
  size_t step = 0;
  std::vector<double> log_probs = {};  // [tokens]; empty if not observed
  std::string log_probs_dtype = {};
  std::vector<double> entropy = {};  // [tokens]; empty if not observed
  std::string entropy_dtype = {};
};

// The steps of a cell and of the reference. All spans have one element per step.
struct NumbersInput {
  std::span<const ObservedStep> reported;
  std::span<const StepTensors> tensors;
  std::span<const PackedBatch> batches;
  std::span<const GoldenStep> golden;
  std::span<const FloorStep> floor;
  ForwardOnly forward_only = {};
  // The same in fp32, of a cell in bf16 with a stand-in; and the floor of fp32 if it was seen.
  ForwardOnly in_fp32 = {};
  std::span<const FloorStep> fp32_floor = {};
  double average_multiple = kFloorMultiple;  // AverageMultiple() of the precision that ran
};

// Compares the log-probs of the forward that trains nothing, those of the one in fp32, the entropy
// of its tokens if the golden has one, and, per step: log-probs (mean, 99 % quantile and maximum of
// |difference| over judged tokens), loss, total gradient norm, and per tensor the sampled gradient
// and the norm of the whole gradient. The outcomes:
// - wrong-shape at forward or backward: the number of log-probs differs from the batch, or the
//   number of samples from the golden.
// - not-finite at forward: NaN or infinity in the loss or in a log-prob of a judged token; at
//   backward: in a gradient or its norm. The last position of each document has no label and may
//   hold anything.
// - unseen: a step, the log-probs, the loss, the norm or a tensor's gradient was not reported.
// A gradient that is zero in the golden has no relative error: its norm is compared as a share of
// the norm of all gradients.
// - wrong at golden: a quantity is beyond kFloorMultiple floors, or the mean error of log-probs or
//   the norm of a gradient beyond `average_multiple`. Reported is the first step that is
//   off and in it the first of log-probs-off, loss-off, entropy-off, gradients-off and
//   grad-norm-off; later errors may only be consequences. A floor of 0 allows only the golden.
//   If none is, log-probs-off where step 1 is nearer to a predicted wrong answer than to the right
//   one (diagnosis.h).
CheckResult CheckNumbers(const NumbersInput& input);

// The same of these steps of a cell, which may be others than it trained.
CheckResult CheckNumbersOf(const CaseFile& file, std::span<const ObservedStep> reported,
                           const std::vector<StepTensors>& steps);

// The predicted wrong answer that step 1's log-probs are nearer to than to the right ones
// (diagnosis.h), by the floor with which CheckNumbers compares their mean. nullopt without a step.
std::optional<Diagnosis> NearestWrongAnswer(const NumbersInput& input);

}  // namespace bkm

#endif  // HARNESS_JUDGE_NUMBERS_CHECK_H_
