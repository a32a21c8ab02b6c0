// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/reference/decoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding.h>

#include <cmath>
#include <string>

#include "harness/reference/experts.h"

namespace bkm {

using at::Tensor;

Tensor Decoder::Logits(const Weights& weights, const Tensor& input_ids,
                       const std::vector<int64_t>& document_lengths,
                       const AttentionVariant& variant) const {
  Weights seen = buffers_;
  // Cast once, so that a tied weight accumulates both gradients in the type of `parameters`.
  for (const auto& [name, weight] : weights) seen[name] = weight.to(arithmetic_.parameters);
  const Documents documents(document_lengths);
  const WeightScope model(seen, "model.");
  const auto norm = [&](const Tensor& x, const WeightScope& scope) {
    const Tensor& weight = scope.At("weight");
    const bool has_offset = shape_.norm_offset != 0;
    return RmsNorm(x, has_offset ? weight.to(arithmetic_.inner()) + shape_.norm_offset : weight,
                   shape_.norm_epsilon, arithmetic_);
  };
  Tensor x = at::embedding(model.At("embed_tokens.weight"), input_ids).to(arithmetic_.elementwise);
  if (shape_.embedding_scaled) x = x * std::sqrt(static_cast<double>(shape_.hidden));
  for (int64_t layer = 0; layer < shape_.layers; ++layer) {
    const WeightScope scope = model.Below("layers." + std::to_string(layer));
    Tensor attended =
        SelfAttention(norm(x, scope.Below("input_layernorm")), scope.Below("self_attn"), shape_,
                      layer, documents, variant, arithmetic_);
    if (shape_.norm_outputs) attended = norm(attended, scope.Below("post_attention_layernorm"));
    x = x + attended.to(arithmetic_.elementwise);
    const Tensor normed = norm(x, scope.Below(shape_.norm_outputs ? "pre_feedforward_layernorm"
                                                                  : "post_attention_layernorm"));
    const WeightScope mlp = scope.Below("mlp");
    Tensor fed = shape_.HasExperts(layer)
                     ? MixtureOfExperts(normed, mlp, shape_.experts, arithmetic_)
                     : FeedForward(normed, mlp, arithmetic_, shape_.gelu);
    if (shape_.norm_outputs) fed = norm(fed, scope.Below("post_feedforward_layernorm"));
    x = x + fed.to(arithmetic_.elementwise);
  }
  const Tensor logits =
      Linear(norm(x, model.Below("norm")), Head(seen), Divided::kOutputs, arithmetic_);
  const bool is_capped = shape_.logit_softcap > 0 && !shape_.value_head;
  return is_capped ? Capped(logits, shape_.logit_softcap) : logits;
}

WeightScope Decoder::Head(const Weights& weights) const {
  if (shape_.value_head) return {weights, "score."};
  return {weights, shape_.tied ? "model.embed_tokens." : "lm_head."};
}

}  // namespace bkm
