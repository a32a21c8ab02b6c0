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

// How one run of a cell differs from another run of the same cell. Written to run.json: never
// rename.
enum class DriftClass {
  kBitEqual,     // every number that was sampled has the same bits
  kWithinFloor,  // rounding: no quantity moved by more than kFloorMultiple floors
  kReal,         // more than rounding explains
};
absl::string_view Name(DriftClass kind);

struct Drift {
  DriftClass kind = DriftClass::kBitEqual;
  double multiple = 0;  // the largest distance, in floors of its quantity; infinite: no number
  std::string where;    // of that distance: "log-probs in step 1", "gradient of X in step 3"
  bool operator==(const Drift&) const = default;
};

// The distance from `before` to `now`: per step the mean |difference| of log-probs over judged
// tokens, and per tensor the relative distance of the sampled gradients, each in floors. A floor
// says how far a right run may be from the golden, so two right runs are within two of it, and
// kFloorMultiple, the project's one multiple, leaves them the same room as the golden does. Steps
// or tensors that only one side has, other sizes, and numbers that are not finite on one side only
// are real drift. Runs have one element per step; `floor` and `batches` are those of the probe;
// fewer than the steps: an error.
absl::StatusOr<Drift> CompareRuns(std::span<const StepTensors> before,
                                  std::span<const StepTensors> now,
                                  std::span<const FloorStep> floor,
                                  std::span<const PackedBatch> batches);

}  // namespace bkm

#endif  // HARNESS_JUDGE_DRIFT_H_
