// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_GRADIENT_RELATION_H_
#define HARNESS_JUDGE_GRADIENT_RELATION_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/judge/reference_data.h"
#include "harness/judge/step_files.h"
#include "harness/model/layout.h"

namespace bkm {

// One step's gradients beside the right ones. Both are sampled after clipping, with the total norm
// before it.
struct GradientComparison {
  const std::map<std::string, SampledTensor>& seen;
  double seen_norm = 0;
  const std::map<std::string, GoldenTensor>& golden;
  double golden_norm = 0;
  double clip_norm = 0;
  // The largest relative error of a right gradient, by tensor.
  const std::map<std::string, double>& floor;
};

// How many times as large gradients of total norm `norm` were before they were clipped to `clip`
// (0: not clipped).
double ClippedBy(double norm, double clip);

// What is wrong with gradients, if one factor says it: "gradients are 2.000 times the golden in
// every tensor: summed, not averaged, over a group of 2", or the same of one kind of parameters
// (norms, the router, the embedding, ...). nullopt if no factor does.
std::optional<std::string> DescribeFactor(const GradientComparison& gradients,
                                          const Layout& layout);

}  // namespace bkm

#endif  // HARNESS_JUDGE_GRADIENT_RELATION_H_
