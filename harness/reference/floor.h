// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REFERENCE_FLOOR_H_
#define HARNESS_REFERENCE_FLOOR_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/json.h"
#include "harness/reference/arithmetic.h"
#include "harness/reference/golden.h"

namespace bkm {

// Runs of an ensemble, shared out evenly among its ways. Of each way's runs the first has the
// weights as they are, the others are dithered. The floor of a scalar is the largest of nine draws
// per step: that a right run exceeds it four times by bad luck is then a matter of 1 in 10^4, where
// with three draws it would be 1 in 100.
inline constexpr int kMembers = 9;

// The ways in which a right implementation may round at this precision ("bf16" or "fp32").
absl::StatusOr<std::vector<Arithmetic>> WaysOf(absl::string_view precision);

// `weights` with uniform noise of up to half an ulp of the type in which `way` multiplies, so that
// rounding falls another way in each run; 0 leaves them alone. Weights that the way does not round
// to that type (norms under autocast) stay as they are.
Weights Dithered(const Weights& weights, const Arithmetic& way, int dither);

// How far one run is from the golden, as one element of "steps" in the floor file.
absl::StatusOr<Json> DistanceOf(const PackedBatch& batch, const StepFacts& run,
                                const StepFacts& golden);

// Every way and dithering through all steps against the golden; each number is the largest of the
// ensemble (of a scalar also over all steps), and at least what one rounding to the reported type
// costs. The floor file of harness/protocol/README.md.
absl::StatusOr<Json> ComputeFloor(const LoadedProbe& probe, const std::vector<StepFacts>& golden,
                                  absl::string_view precision);

}  // namespace bkm

#endif  // HARNESS_REFERENCE_FLOOR_H_
