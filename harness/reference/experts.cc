// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/reference/experts.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace bkm {

using at::Tensor;

namespace {

// Maps an expert's number and the vectors of some tokens to their outputs.
using Expert = std::function<Tensor(int64_t, const Tensor&)>;

// Each expert has its own matrices.
Expert GatedExperts(const WeightScope& scope, const Arithmetic& arithmetic) {
  return [&scope, &arithmetic](int64_t expert, const Tensor& x) {
    return FeedForward(x, scope.Below("experts." + std::to_string(expert)), arithmetic);
  };
}

// All experts' matrices are in one tensor [experts, in, out].
Expert ClampedExperts(const WeightScope& scope, double limit, const Arithmetic& arithmetic) {
  // unbind rather than select: its gradient is one tensor instead of one per expert.
  const auto all = [&](const char* name) {
    return scope.At(std::string("experts.") + name).to(arithmetic.matmul).unbind(0);
  };
  return [=, gate_up = all("gate_up_proj"), gate_up_bias = all("gate_up_proj_bias"),
          down = all("down_proj"),
          down_bias = all("down_proj_bias")](int64_t expert, const Tensor& x) {
    const Tensor inner =
        Product(x.to(arithmetic.matmul), gate_up[expert], Divided::kOutputs, arithmetic) +
        gate_up_bias[expert];
    return Product(ClampedSwiGlu(inner, limit), down[expert], Divided::kInputs, arithmetic) +
           down_bias[expert];
  };
}

// The weighted sum over each token's experts.
Tensor Combine(const Tensor& x, const Routing& routing, int64_t experts, const Expert& run,
               const Arithmetic& arithmetic) {
  Tensor sum = at::zeros(x.sizes(), x.options().dtype(arithmetic.elementwise));
  for (int64_t expert = 0; expert < experts; ++expert) {
    const Tensor used =
        routing.experts.eq(expert).nonzero();  // [uses, 2]: token, index among its experts
    if (used.size(0) == 0) continue;
    const Tensor tokens = used.select(1, 0);
    const Tensor weight = routing.weights.index({tokens, used.select(1, 1)}).unsqueeze(1);
    const Tensor output = run(expert, x.index_select(0, tokens));
    sum = sum.index_add(0, tokens, (output * weight).to(arithmetic.elementwise));
  }
  return sum;
}

// The scores [tokens, experts], those of experts outside the token's best groups as low as none.
Tensor OfBestGroups(const Tensor& scores, const ExpertsShape& shape) {
  if (shape.active_groups == shape.groups) return scores;
  const Tensor grouped = scores.unflatten(-1, {shape.groups, -1});  // [tokens, groups, experts]
  const Tensor of_group = std::get<0>(grouped.topk(2, -1)).sum(-1);
  const Tensor best = std::get<1>(of_group.topk(shape.active_groups, -1));
  const Tensor left_out = at::ones_like(of_group, at::kBool).scatter(-1, best, false).unsqueeze(-1);
  return grouped.masked_fill(left_out, -std::numeric_limits<double>::infinity()).flatten(-2);
}

}  // namespace

Routing ChooseExperts(const Tensor& logits, const Tensor& correction, const ExpertsShape& shape) {
  const Tensor scores = shape.sigmoid ? at::sigmoid(logits) : at::softmax(logits, -1);
  const Tensor ranked =
      correction.defined() ? scores + correction.to(scores.scalar_type()) : scores;
  const Tensor experts = std::get<1>(OfBestGroups(ranked.detach(), shape).topk(shape.active, -1));
  Tensor weights = (shape.corrected ? ranked : scores).gather(-1, experts);
  if (shape.normalised) weights = weights / weights.sum(-1, true);
  return {experts, weights * shape.scale};
}

Tensor ClampedSwiGlu(const Tensor& gate_up, double limit) {
  const Tensor pairs = gate_up.unflatten(-1, {-1, 2});
  const Tensor gate = pairs.select(-1, 0).clamp_max(limit);
  const Tensor up = pairs.select(-1, 1).clamp(-limit, limit);
  return (up + 1) * gate * at::sigmoid(gate * 1.702);
}

Tensor MixtureOfExperts(const Tensor& x, const WeightScope& scope, const ExpertsShape& shape,
                        const Arithmetic& arithmetic) {
  const bool clamped = shape.limit > 0;
  const WeightScope router = scope.Below(clamped ? "router" : "gate");
  const char* kCorrection = "e_score_correction_bias";
  // Libraries score in fp32; some first round the logits to the type of products.
  const Tensor logits = Linear(x, router, Divided::kNone, arithmetic).to(arithmetic.inner());
  const Routing routing =
      ChooseExperts(logits, router.Has(kCorrection) ? router.At(kCorrection) : Tensor(), shape);
  const Expert expert =
      clamped ? ClampedExperts(scope, shape.limit, arithmetic) : GatedExperts(scope, arithmetic);
  const Tensor routed = Combine(x, routing, shape.count, expert, arithmetic);
  if (shape.shared == 0) return routed;
  return routed + FeedForward(x, scope.Below("shared_experts"), arithmetic);
}

}  // namespace bkm
