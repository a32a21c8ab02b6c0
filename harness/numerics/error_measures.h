// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_ERROR_MEASURES_H_
#define HARNESS_NUMERICS_ERROR_MEASURES_H_

#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace bkm {

// How far an observation is from the golden. The rules, the same for every measure:
// - Both sides have the same number of elements, and at least one: anything else is an error, never
//   "close". Shapes are compared by the caller, who knows them.
// - The golden is finite. NaN or infinity in it is an error: the reference is broken.
// - NaN or infinity in the observation is infinitely far away. No measure ever returns NaN.
// - -0 equals 0.
// - Relative to a golden of zero: 0 when the observation is zero too, else infinity.

// |observed - golden| element by element.
absl::StatusOr<std::vector<double>> AbsoluteErrors(std::span<const double> observed,
                                                   std::span<const double> golden);

// |observed - golden| / |golden|.
absl::StatusOr<double> RelativeError(double observed, double golden);

// ||observed - golden|| / ||golden||, Euclidean.
absl::StatusOr<double> RelativeNormError(std::span<const double> observed,
                                         std::span<const double> golden);

// 1 - cosine of the angle between the two, in [0, 2], exact also for small angles: blind to scale,
// so it tells a wrong direction from a wrong factor. Zero against zero: 0; against non-zero: 1;
// an observation that is not finite: 2.
absl::StatusOr<double> CosineGap(std::span<const double> observed, std::span<const double> golden);

// Of errors, which are never NaN; `errors` has at least one element.
double Mean(std::span<const double> errors);
// The smallest element that at least the fraction `q` (0 to 1) of all elements does not exceed: the
// nearest rank, no interpolation.
double Quantile(std::vector<double> errors, double q);

// Half the distance between neighbouring numbers around `value` in a type with so many bits of
// fraction (fp32: 23, bf16: 7): the largest error of one rounding to it.
double HalfUlp(double value, int fraction_bits);

}  // namespace bkm

#endif  // HARNESS_NUMERICS_ERROR_MEASURES_H_
