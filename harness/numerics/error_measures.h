// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_ERROR_MEASURES_H_
#define HARNESS_NUMERICS_ERROR_MEASURES_H_

#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace bkm {

// Distances between observed numbers and the golden. Every measure follows these rules:
// - Both sides have the same number of elements, at least one; anything else is an error, never
//   "close". The caller compares shapes.
// - The golden is finite. NaN or infinity in it is an error: the reference is broken.
// - NaN or infinity in the observation is infinitely far away. No measure returns NaN.
// - -0 equals 0.
// - Relative to a golden of zero, the distance is 0 if the observation is zero too, else infinity.

// |observed - golden| element by element.
absl::StatusOr<std::vector<double>> AbsoluteErrors(std::span<const double> observed,
                                                   std::span<const double> golden);

// |observed - golden| / |golden|.
absl::StatusOr<double> RelativeError(double observed, double golden);

// ||observed - golden|| / ||golden||, Euclidean.
absl::StatusOr<double> RelativeNormError(std::span<const double> observed,
                                         std::span<const double> golden);

// 1 - cosine of the angle between the two, in [0, 2], exact for small angles too. It ignores scale,
// so it tells a wrong direction from a wrong factor. Zero against zero is 0, zero against non-zero
// is 1, an observation that is not finite is 2.
absl::StatusOr<double> CosineGap(std::span<const double> observed, std::span<const double> golden);

// The mean of `errors`, which has at least one element and no NaN.
double Mean(std::span<const double> errors);
// The nearest-rank quantile: the smallest element that is not exceeded by at least the fraction `q`
// (0 to 1) of all elements. No interpolation.
double Quantile(std::vector<double> errors, double q);

inline constexpr int kFp32FractionBits = 23;
inline constexpr int kBf16FractionBits = 7;

// Half the distance between neighbouring numbers at `value` in a type with this many fraction bits:
// the largest error of one rounding to that type.
double HalfUlp(double value, int fraction_bits);

// Whether a type with this many fraction bits has `value`, whatever its exponent.
bool IsExact(double value, int fraction_bits);
// Whether it has all of them.
bool AreExact(std::span<const double> values, int fraction_bits);

}  // namespace bkm

#endif  // HARNESS_NUMERICS_ERROR_MEASURES_H_
