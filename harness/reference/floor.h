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

// The number of runs in an ensemble, divided evenly among its ways. The first run of each way has
// the weights as they are, the others are dithered. The floor of a scalar is the largest of nine
// draws per step. So a right run exceeds four floors by bad luck with a probability of 10^-4; with
// three draws it would be 10^-2.
inline constexpr int kMembers = 9;

// The ways in which a right implementation may round at this precision ("bf16" or "fp32").
absl::StatusOr<std::vector<Arithmetic>> WaysOf(absl::string_view precision);

// `weights` with uniform noise of up to half an ulp of the type in which `way` multiplies, so that
// each run rounds differently. Dither 0 leaves the weights alone. Weights that the way does not
// round to that type (norms under autocast) stay as they are.
Weights Dithered(const Weights& weights, const Arithmetic& way, int dither);

// The distance of one run from the golden, as one element of "steps" in the floor file. That of the
// loss is at least two standard errors of a mean of the run's errors of log-probs. A gradient
// that the golden lacks (an expert without tokens) has a distance in "of_total" only: the share of
// the norm of all gradients.
absl::StatusOr<Json> DistanceOf(const PackedBatch& batch, const StepFacts& run,
                                const StepFacts& golden);

// Rounding may change which expert is a token's last. That changes the gradients of two experts
// abruptly, and those of two others in another right run. So in `step`, an element of "steps", each
// expert's gradient gets the largest distance of all experts of its layer.
void ShareAmongExperts(Json& step);

// Runs every way and dithering through all steps, with sums divided as among ranks, and compares
// them with the golden. Each number is the largest of the ensemble (for a scalar also over all
// steps), and at least the cost of one rounding to the reported type. In bf16, that type is bf16;
// "in_fp32" has the same for log-probs and loss that are reported in fp32, of the ways that compute
// them so. The result is the floor file of harness/protocol/README.md.
absl::StatusOr<Json> ComputeFloor(const LoadedProbe& probe, const std::vector<StepFacts>& golden,
                                  absl::string_view precision, const Reductions& reductions = {});

}  // namespace bkm

#endif  // HARNESS_REFERENCE_FLOOR_H_
