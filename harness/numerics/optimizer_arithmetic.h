// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_OPTIMIZER_ARITHMETIC_H_
#define HARNESS_NUMERICS_OPTIMIZER_ARITHMETIC_H_

#include <span>
#include <vector>

#include "harness/model/probe.h"

namespace bkm {

// The factor by which torch.nn.utils.clip_grad_norm_ multiplies all gradients: min(1, clip_norm /
// (total_norm + 1e-6)).
double ClipCoefficient(double total_norm, double clip_norm);

// The Euclidean norm over all tensors from their single norms, as clip_grad_norm_ computes it.
double TotalNorm(std::span<const double> tensor_norms);

// AdamW's two moving averages for some elements of a tensor; empty before the first step.
struct AdamWMoments {
  std::vector<double> first;
  std::vector<double> second;
  int steps = 0;
};

// One step of torch.optim.AdamW (decoupled weight decay, bias correction, no amsgrad) in fp64:
//   p -= lr * wd * p;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
//   p -= lr / (1 - b1^t) * m / (sqrt(v / (1 - b2^t)) + eps)
//
// `gradient` is already clipped and has the size of `parameter`. The rule works element by element,
// so a sample of a tensor is enough to check an observed update.
void AdamWStep(const OptimizerSettings& settings, std::span<const double> gradient,
               AdamWMoments& moments, std::span<double> parameter);

}  // namespace bkm

#endif  // HARNESS_NUMERICS_OPTIMIZER_ARITHMETIC_H_
