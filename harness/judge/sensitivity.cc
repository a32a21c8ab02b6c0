// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/sensitivity.h"

#include <algorithm>
#include <vector>

#include "harness/judge/numbers_check.h"

namespace bkm {
namespace {

void Keep(double limit, double& least) {
  if (limit < least) least = limit;  // not a number never counts
}

}  // namespace

size_t Sensitivity::BlindGradients() const {
  return std::count_if(gradients.begin(), gradients.end(),
                       [](const auto& gradient) { return gradient.second >= 1; });
}

double Sensitivity::MedianGradient() const {
  if (gradients.empty()) return INFINITY;
  std::vector<double> limits;
  for (const auto& [name, limit] : gradients) limits.push_back(limit);
  const auto middle = limits.begin() + static_cast<std::ptrdiff_t>(limits.size() / 2);
  std::nth_element(limits.begin(), middle, limits.end());
  return *middle;
}

std::pair<std::string, double> Sensitivity::WorstGradient() const {
  std::pair<std::string, double> worst{"", -INFINITY};
  for (const auto& [name, limit] : gradients) {
    if (limit > worst.second) worst = {name, limit};
  }
  return worst;
}

Sensitivity SensitivityOf(std::span<const GoldenStep> golden, std::span<const FloorStep> floor,
                          double average_multiple, const ReportTypes& types) {
  Sensitivity least;
  for (size_t k = 0; k < std::min(golden.size(), floor.size()); ++k) {
    const TokenFloor& log_probs = floor[k].Reports(types.fp32_log_probs).log_probs;
    Keep(average_multiple * log_probs.mean, least.log_probs_mean);
    Keep(kFloorMultiple * log_probs.max, least.log_probs_max);
    if (golden[k].loss != 0)
      Keep(kFloorMultiple * floor[k].Reports(types.fp32_loss).loss / std::abs(golden[k].loss),
           least.loss);
    Keep(kFloorMultiple * std::max(floor[k].total_norm, kNormReduction), least.total_norm);
    for (const auto& [name, tensor] : golden[k].tensors) {
      const auto of = floor[k].gradients.find(name);
      if (of == floor[k].gradients.end() || !(tensor.gradient_norm > 0)) continue;
      double& limit = least.gradients.emplace(name, INFINITY).first->second;
      Keep(kFloorMultiple * std::max(of->second, kNormReduction), limit);
    }
  }
  return least;
}

}  // namespace bkm
