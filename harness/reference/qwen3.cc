// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/reference/qwen3.h"

#include <cmath>
#include <limits>

namespace bkm {

using at::Tensor;

Tensor RmsNorm(const Tensor& x, const Tensor& weight, double epsilon,
               const Arithmetic& arithmetic) {
  const Tensor wide = x.to(arithmetic.inner());
  const Tensor scale = at::rsqrt(wide.square().mean(-1, /*keepdim=*/true) + epsilon);
  return (wide * scale * weight.to(arithmetic.inner())).to(arithmetic.elementwise);
}

Tensor ApplyRope(const Tensor& x, double theta, const Arithmetic& arithmetic) {
  const int64_t tokens = x.size(0);
  const int64_t dim = x.size(2);
  // Angles in the type in which implementations compute them: in fp32 they are off by up to
  // position * 2^-24, which belongs to what a right run may do.
  const auto options = at::TensorOptions().dtype(arithmetic.inner());
  const Tensor exponents = at::arange(0, dim, 2, options) / static_cast<double>(dim);
  const Tensor angles = at::outer(at::arange(tokens, options), at::pow(theta, -exponents));
  const auto table = [&](const Tensor& half) {  // [tokens, 1, dim]
    return at::cat({half, half}, -1).unsqueeze(1).to(arithmetic.elementwise);
  };
  const Tensor wide = x.to(arithmetic.elementwise);
  const std::vector<Tensor> halves = wide.chunk(2, -1);
  const Tensor turned = at::cat({-halves[1], halves[0]}, -1);
  return wide * table(angles.cos()) + turned * table(angles.sin());
}

Tensor CausalAttention(const Tensor& q, const Tensor& k, const Tensor& v,
                       const Arithmetic& arithmetic) {
  const int64_t tokens = q.size(0);
  const int64_t group = q.size(1) / k.size(1);
  const auto heads_first = [&](const Tensor& x, int64_t repeats) {  // [heads, tokens, head_dim]
    return x.to(arithmetic.matmul).transpose(0, 1).repeat_interleave(repeats, 0);
  };
  const double scale = 1.0 / std::sqrt(static_cast<double>(q.size(2)));
  const Tensor scores =
      at::matmul(heads_first(q, 1), heads_first(k, group).transpose(1, 2)) * scale;
  const Tensor future = at::ones({tokens, tokens}, at::TensorOptions().dtype(at::kBool)).triu(1);
  const Tensor weights = at::softmax(
      scores.to(arithmetic.inner()).masked_fill(future, -std::numeric_limits<double>::infinity()),
      -1);
  return at::matmul(weights.to(arithmetic.matmul), heads_first(v, group)).transpose(0, 1);
}

Tensor LabelLogProbs(const Tensor& logits, const Tensor& labels, const Arithmetic& arithmetic) {
  const Tensor log_probs = at::log_softmax(logits.to(arithmetic.log_probs), -1);
  return log_probs.gather(-1, labels.unsqueeze(-1)).squeeze(-1);
}

Tensor Qwen3::Project(const Tensor& x, const Tensor& weight) const {
  return at::linear(x.to(arithmetic_.matmul), weight.to(arithmetic_.matmul));
}

Tensor Qwen3::Attention(const Weights& weights, const std::string& prefix, const Tensor& x,
                        const std::vector<int64_t>& document_lengths) const {
  const auto weight = [&](const char* name) { return weights.at(prefix + name + ".weight"); };
  const auto heads = [&](const char* name, int64_t count) {
    return Project(x, weight(name)).view({-1, count, shape_.head_dim});
  };
  const Tensor q =
      RmsNorm(heads("q_proj", shape_.heads), weight("q_norm"), shape_.norm_epsilon, arithmetic_);
  const Tensor k =
      RmsNorm(heads("k_proj", shape_.kv_heads), weight("k_norm"), shape_.norm_epsilon, arithmetic_);
  const Tensor v = heads("v_proj", shape_.kv_heads);
  std::vector<Tensor> outputs;
  int64_t start = 0;
  for (const int64_t length : document_lengths) {
    const auto document = [&](const Tensor& all) { return all.narrow(0, start, length); };
    const auto turned = [&](const Tensor& all) {
      return ApplyRope(document(all), shape_.rope.theta, arithmetic_);
    };
    outputs.push_back(CausalAttention(turned(q), turned(k), document(v), arithmetic_));
    start += length;
  }
  return Project(at::cat(outputs, 0).flatten(1), weight("o_proj"));
}

Tensor Qwen3::FeedForward(const Weights& weights, const std::string& prefix,
                          const Tensor& x) const {
  const auto weight = [&](const char* name) { return weights.at(prefix + name + ".weight"); };
  const Tensor gate = at::silu(Project(x, weight("gate_proj")));
  return Project(gate * Project(x, weight("up_proj")), weight("down_proj"));
}

Tensor Qwen3::Logits(const Weights& weights, const Tensor& input_ids,
                     const std::vector<int64_t>& document_lengths) const {
  Weights seen;  // cast once: a tied weight gathers both gradients in the type of `parameters`
  for (const auto& [name, weight] : weights) seen[name] = weight.to(arithmetic_.parameters);
  const Tensor& embedding = seen.at("model.embed_tokens.weight");
  const auto norm = [&](const Tensor& x, const std::string& name) {
    return RmsNorm(x, seen.at(name + ".weight"), shape_.norm_epsilon, arithmetic_);
  };
  Tensor x = at::embedding(embedding, input_ids).to(arithmetic_.elementwise);
  for (int64_t layer = 0; layer < shape_.layers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    x = x + Attention(seen, prefix + "self_attn.", norm(x, prefix + "input_layernorm"),
                      document_lengths)
                .to(arithmetic_.elementwise);
    x = x + FeedForward(seen, prefix + "mlp.", norm(x, prefix + "post_attention_layernorm"))
                .to(arithmetic_.elementwise);
  }
  return Project(norm(x, "model.norm"), shape_.tied ? embedding : seen.at("lm_head.weight"));
}

}  // namespace bkm
