// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/reference/decoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding.h>

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
    return RmsNorm(x, scope.At("weight"), shape_.norm_epsilon, arithmetic_);
  };
  Tensor x = at::embedding(model.At("embed_tokens.weight"), input_ids).to(arithmetic_.elementwise);
  for (int64_t layer = 0; layer < shape_.layers; ++layer) {
    const WeightScope scope = model.Below("layers." + std::to_string(layer));
    const Tensor attended =
        SelfAttention(norm(x, scope.Below("input_layernorm")), scope.Below("self_attn"), shape_,
                      layer, documents, variant, arithmetic_);
    x = x + attended.to(arithmetic_.elementwise);
    const Tensor normed = norm(x, scope.Below("post_attention_layernorm"));
    const WeightScope mlp = scope.Below("mlp");
    const Tensor fed = shape_.HasExperts(layer)
                           ? MixtureOfExperts(normed, mlp, shape_.experts, arithmetic_)
                           : FeedForward(normed, mlp, arithmetic_);
    x = x + fed.to(arithmetic_.elementwise);
  }
  return Linear(norm(x, model.Below("norm")), Head(seen), Divided::kOutputs, arithmetic_);
}

WeightScope Decoder::Head(const Weights& weights) const {
  if (shape_.value_head) return {weights, "score."};
  return {weights, shape_.tied ? "model.embed_tokens." : "lm_head."};
}

}  // namespace bkm
