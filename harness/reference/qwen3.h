// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REFERENCE_QWEN3_H_
#define HARNESS_REFERENCE_QWEN3_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/numerics/model_shapes.h"
#include "harness/reference/arithmetic.h"

namespace bkm {

// By HF's canonical name, HF's layout.
using Weights = std::map<std::string, at::Tensor>;

// x / sqrt(mean(x^2) + epsilon) * weight over the last dimension (Zhang and Sennrich 2019).
at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double epsilon,
                   const Arithmetic& arithmetic);

// Rotary embedding (Su et al. 2021) in HF's half-split layout of [tokens, heads, head_dim]:
// elements i and i + head_dim/2 turn together by position * theta^(-2i/head_dim). Positions count
// from 0 along the tokens.
at::Tensor ApplyRope(const at::Tensor& x, double theta, const Arithmetic& arithmetic);

// Dense causal attention within one document: softmax(q k^T / sqrt(head_dim)) v for
// q [tokens, heads, head_dim] and k, v [tokens, kv_heads, head_dim]; heads share kv heads in
// neighbouring groups. The result is [tokens, heads, head_dim].
at::Tensor CausalAttention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const Arithmetic& arithmetic);

// log_softmax(logits)[t, labels[t]] for logits [tokens, vocabulary].
at::Tensor LabelLogProbs(const at::Tensor& logits, const at::Tensor& labels,
                         const Arithmetic& arithmetic);

// A decoder as Qwen3 defines it (qk-norm, grouped queries, SwiGLU), written from the papers and the
// weights' layout alone; it knows neither torchtitan nor transformers. Documents of the packed
// batch are told apart by looping over them: there is no mask to get wrong.
class Qwen3 {
 public:
  Qwen3(const ModelShape& shape, const Arithmetic& arithmetic)
      : shape_(shape), arithmetic_(arithmetic) {}

  // Logits [tokens, vocabulary] of packed documents; `input_ids` is int64 [tokens].
  at::Tensor Logits(const Weights& weights, const at::Tensor& input_ids,
                    const std::vector<int64_t>& document_lengths) const;

 private:
  at::Tensor Attention(const Weights& weights, const std::string& prefix, const at::Tensor& x,
                       const std::vector<int64_t>& document_lengths) const;
  at::Tensor FeedForward(const Weights& weights, const std::string& prefix,
                         const at::Tensor& x) const;
  at::Tensor Project(const at::Tensor& x, const at::Tensor& weight) const;

  ModelShape shape_;
  Arithmetic arithmetic_;
};

}  // namespace bkm

#endif  // HARNESS_REFERENCE_QWEN3_H_
