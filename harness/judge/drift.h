// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_DRIFT_H_
#define HARNESS_JUDGE_DRIFT_H_

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/judge/step_files.h"
#include "harness/numerics/packed_batch.h"

namespace bkm {

// How two runs of one cell differ. Written to run.json: never rename.
enum class DriftClass {
  kBitEqual,     // all sampled numbers have the same bits
  kWithinFloor,  // rounding: no quantity differs by more than kFloorMultiple floors
  kReal,         // a larger difference than rounding explains
};
absl::string_view Name(DriftClass kind);

struct Drift {
  DriftClass kind = DriftClass::kBitEqual;
  double multiple = 0;  // the largest distance, in floors; infinite if it cannot be measured
  std::string where;    // its quantity: "log-probs in step 1", "gradient of X in step 3"
  bool operator==(const Drift&) const = default;
};

// The distance from `before` to `now`: per step the mean |difference| of log-probs over judged
// tokens, and per tensor the relative distance of the sampled gradients, each in floors. The limit
// is kFloorMultiple, as for the comparison with the golden: two right runs are at most two floors
// apart. Steps or tensors that only one run has, different sizes, and numbers that are finite in
// one run only are real drift. Both runs have one element per step; `floor` and `batches` belong to
// the probe and must have at least as many, else the result is an error.
absl::StatusOr<Drift> CompareRuns(std::span<const StepTensors> before,
                                  std::span<const StepTensors> now,
                                  std::span<const FloorStep> floor,
                                  std::span<const PackedBatch> batches);

}  // namespace bkm

#endif  // HARNESS_JUDGE_DRIFT_H_
