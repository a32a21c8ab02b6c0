// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/error_measures.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "harness/base/check.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool IsFinite(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

absl::Status CheckComparable(std::span<const double> observed, std::span<const double> golden) {
  if (observed.size() != golden.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the observation has ", observed.size(),
                                                   " elements, the golden ", golden.size()));
  }
  if (golden.empty()) return absl::InvalidArgumentError("there is nothing to compare");
  if (!IsFinite(golden)) {
    return absl::InvalidArgumentError("the golden is not finite: the reference is broken");
  }
  return absl::OkStatus();
}

// Scaled by the largest element to avoid underflow and overflow.
double Norm(std::span<const double> values) {
  double largest = 0;
  for (const double v : values) largest = std::max(largest, std::abs(v));
  if (largest == 0 || !std::isfinite(largest)) return largest;
  double sum = 0;
  for (const double v : values) sum += (v / largest) * (v / largest);
  return largest * std::sqrt(sum);
}

}  // namespace

absl::StatusOr<std::vector<double>> AbsoluteErrors(std::span<const double> observed,
                                                   std::span<const double> golden) {
  RETURN_IF_ERROR(CheckComparable(observed, golden));
  std::vector<double> errors(golden.size());
  for (size_t i = 0; i < golden.size(); ++i) {
    errors[i] = std::isfinite(observed[i]) ? std::abs(observed[i] - golden[i]) : kInfinity;
  }
  return errors;
}

absl::StatusOr<double> RelativeError(double observed, double golden) {
  return RelativeNormError({&observed, 1}, {&golden, 1});
}

absl::StatusOr<double> RelativeNormError(std::span<const double> observed,
                                         std::span<const double> golden) {
  ASSIGN_OR_RETURN(const std::vector<double> errors, AbsoluteErrors(observed, golden));
  const double distance = Norm(errors);
  const double size = Norm(golden);
  if (size == 0) return distance == 0 ? 0.0 : kInfinity;
  return distance / size;
}

absl::StatusOr<double> CosineGap(std::span<const double> observed, std::span<const double> golden) {
  RETURN_IF_ERROR(CheckComparable(observed, golden));
  if (!IsFinite(observed)) return 2.0;
  const double a = Norm(observed);
  const double b = Norm(golden);
  if (a == 0 || b == 0) return a == b ? 0.0 : 1.0;
  // For unit vectors u and v, 1 - u.v = |u - v|^2 / 2: no cancellation when they almost agree.
  double sum = 0;
  for (size_t i = 0; i < golden.size(); ++i) {
    const double gap = observed[i] / a - golden[i] / b;
    sum += gap * gap;
  }
  return std::min(sum / 2, 2.0);
}

double Mean(std::span<const double> errors) {
  HARNESS_CHECK(!errors.empty()) << "the mean of nothing";
  double sum = 0;
  for (const double error : errors) sum += error;
  return sum / static_cast<double>(errors.size());
}

double Quantile(std::vector<double> errors, double q) {
  HARNESS_CHECK(!errors.empty() && q >= 0 && q <= 1) << "a quantile " << q << " of nothing";
  const auto size = static_cast<double>(errors.size());
  const auto rank = static_cast<size_t>(std::max(1.0, std::ceil(q * size)));
  std::nth_element(errors.begin(), errors.begin() + (rank - 1), errors.end());
  return errors[rank - 1];
}

double HalfUlp(double value, int fraction_bits) {
  if (value == 0 || !std::isfinite(value)) return 0;
  return std::ldexp(1.0, std::ilogb(value) - fraction_bits - 1);
}

bool IsExact(double value, int fraction_bits) {
  int exponent;
  const double scaled = std::ldexp(std::frexp(value, &exponent), fraction_bits + 1);
  return scaled == std::floor(scaled);
}

bool AreExact(std::span<const double> values, int fraction_bits) {
  return std::all_of(values.begin(), values.end(),
                     [&](double value) { return IsExact(value, fraction_bits); });
}

}  // namespace bkm
