// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_OPTIMIZER_ARITHMETIC_H_
#define HARNESS_NUMERICS_OPTIMIZER_ARITHMETIC_H_

#include <span>
#include <vector>

#include "harness/model/probe.h"

namespace bkm {

// The factor that torch.nn.utils.clip_grad_norm_ puts on all gradients:
// min(1, clip_norm / (total_norm + 1e-6)).
double ClipCoefficient(double total_norm, double clip_norm);

// Euclidean norm over all tensors from the norm of each, as clip_grad_norm_ builds it.
double TotalNorm(std::span<const double> tensor_norms);

// The two moving averages of AdamW for some elements of a tensor; empty before the first step.
struct AdamWMoments {
  std::vector<double> first;
  std::vector<double> second;
  int steps = 0;
};

// One step of torch.optim.AdamW (decoupled weight decay, bias correction, no amsgrad) in fp64:
//   p -= lr * wd * p;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
//   p -= lr / (1 - b1^t) * m / (sqrt(v / (1 - b2^t)) + eps)
// `gradient` is already clipped. The rule is element-wise, so a sample of a tensor is enough to
// check an observed update. Gradient and parameter have the same size.
void AdamWStep(const OptimizerSettings& settings, std::span<const double> gradient,
               AdamWMoments& moments, std::span<double> parameter);

}  // namespace bkm

#endif  // HARNESS_NUMERICS_OPTIMIZER_ARITHMETIC_H_
