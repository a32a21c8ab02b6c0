// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/optimizer_arithmetic.h"

#include <algorithm>
#include <cmath>

#include "harness/base/check.h"

namespace bkm {

double ClipCoefficient(double total_norm, double clip_norm) {
  return std::min(1.0, clip_norm / (total_norm + 1e-6));
}

double TotalNorm(std::span<const double> tensor_norms) {
  double sum = 0;
  for (const double norm : tensor_norms) sum += norm * norm;
  return std::sqrt(sum);
}

void AdamWStep(const OptimizerSettings& settings, std::span<const double> gradient,
               AdamWMoments& moments, std::span<double> parameter) {
  HARNESS_CHECK(gradient.size() == parameter.size()) << "gradient and parameter differ in size";
  if (moments.steps == 0) {
    moments.first.assign(gradient.size(), 0.0);
    moments.second.assign(gradient.size(), 0.0);
  }
  HARNESS_CHECK(moments.first.size() == gradient.size()) << "moments of another tensor";
  const int t = ++moments.steps;
  const double correction1 = 1 - std::pow(settings.beta1, t);
  const double correction2 = 1 - std::pow(settings.beta2, t);
  for (size_t i = 0; i < gradient.size(); ++i) {
    const double g = gradient[i];
    double& m = moments.first[i];
    double& v = moments.second[i];
    m = settings.beta1 * m + (1 - settings.beta1) * g;
    v = settings.beta2 * v + (1 - settings.beta2) * g * g;
    parameter[i] -= settings.learning_rate * settings.weight_decay * parameter[i];
    parameter[i] -=
        settings.learning_rate / correction1 * m / (std::sqrt(v / correction2) + settings.epsilon);
  }
}

}  // namespace bkm
