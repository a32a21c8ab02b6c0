// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/reference/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>

#include "harness/numerics/rope_frequencies.h"
#include "harness/reference/recomputed.h"
#include "harness/reference/rope.h"

namespace bkm {

using at::Tensor;

namespace {

using Sees = AttentionVariant::Sees;

// Tokens of a document whose scores are kept for the backward pass: those of 16 heads and eight
// layers take 1 GiB in fp64.
constexpr int64_t kShort = 1024;

struct Heads {
  Tensor q, k, v;  // [tokens, heads or kv_heads, dim or value dim], rotated by position
};

// Grouped queries (Ainslie et al. 2023), with the norms and biases of some models.
Heads GroupedHeads(const Tensor& x, const WeightScope& scope, const ModelShape& shape,
                   const Tensor& positions, bool turned, const Arithmetic& arithmetic) {
  const auto project = [&](const char* name, int64_t count) {
    return Linear(x, scope.Below(name), Divided::kOutputs, arithmetic)
        .view({-1, count, shape.head_dim});
  };
  const auto turn = [&](Tensor heads, const char* norm) {
    if (shape.qk_norm) {
      heads = RmsNorm(heads, scope.At(norm), shape.norm_epsilon, arithmetic);
    }
    return turned ? ApplyRope(heads, positions, shape.rope, arithmetic) : heads;
  };
  return {turn(project("q_proj", shape.heads), "q_norm.weight"),
          turn(project("k_proj", shape.kv_heads), "k_norm.weight"),
          project("v_proj", shape.kv_heads)};
}

// Multi-head latent attention (DeepSeek-V2, section 2.1): the keys and values of all heads come
// from one normed vector per token, and all heads share the rotated part of a key.
Heads LatentHeads(const Tensor& x, const WeightScope& scope, const ModelShape& shape,
                  const Tensor& positions, bool turned, const Arithmetic& arithmetic) {
  const LatentShape& latent = shape.latent;
  const auto turn = [&](const Tensor& heads) {
    return (turned ? ApplyRope(heads, positions, shape.rope, arithmetic) : heads)
        .to(arithmetic.matmul);
  };
  const auto norm = [&](const Tensor& small, const char* name) {
    return RmsNorm(small, scope.At(name), latent.norm_epsilon, arithmetic);
  };
  const auto queries = [&] {
    if (latent.query_rank == 0)
      return Linear(x, scope.Below("q_proj"), Divided::kOutputs, arithmetic);
    const Tensor small = Linear(x, scope.Below("q_a_proj"), Divided::kNone, arithmetic);
    return Linear(norm(small, "q_a_layernorm.weight"), scope.Below("q_b_proj"), Divided::kOutputs,
                  arithmetic);
  };
  const Tensor q = queries().view({-1, shape.heads, shape.head_dim});
  const std::vector<Tensor> q_parts = q.split_with_sizes({latent.plain_dim, latent.rope_dim}, -1);
  const std::vector<Tensor> compressed =
      Linear(x, scope.Below("kv_a_proj_with_mqa"), Divided::kNone, arithmetic)
          .split_with_sizes({latent.rank, latent.rope_dim}, -1);
  const std::vector<Tensor> kv = Linear(norm(compressed[0], "kv_a_layernorm.weight"),
                                        scope.Below("kv_b_proj"), Divided::kOutputs, arithmetic)
                                     .view({-1, shape.heads, latent.plain_dim + latent.value_dim})
                                     .split_with_sizes({latent.plain_dim, latent.value_dim}, -1);
  const Tensor shared = turn(compressed[1].unsqueeze(1)).expand({-1, shape.heads, -1});
  return {at::cat({q_parts[0], turn(q_parts[1])}, -1), at::cat({kv[0], shared}, -1), kv[1]};
}

// Repeats keys or values for each query head: neighbouring query heads share one.
Tensor ForEachQueryHead(const Tensor& kv, int64_t heads, bool interleaved) {
  const int64_t group = heads / kv.size(1);
  return interleaved ? kv.repeat({1, group, 1}) : kv.repeat_interleave(group, 1);
}

// A matrix product for each head, [heads, queries, keys or dim]. Autograd adds up the parts of the
// gradient of `right`.
Tensor ProductOfQueries(const Tensor& left, const Tensor& right, const Arithmetic& arithmetic) {
  const int parts = arithmetic.reductions.queries;
  if (parts == 1) return at::matmul(left, right);
  std::vector<Tensor> products;
  for (const Tensor& part : left.chunk(parts, 1)) products.push_back(at::matmul(part, right));
  return at::cat(products, 1);
}

AttentionRule RuleOf(const ModelShape& shape, int64_t layer, const WeightScope& scope,
                     const AttentionVariant& variant) {
  AttentionRule rule;
  rule.scale = shape.SoftmaxScale() * RopeSoftmaxFactor(shape.rope);
  rule.softcap = variant.without_softcap ? 0 : shape.attention_softcap;
  rule.causal = variant.sees != Sees::kDocument && variant.sees != Sees::kAll;
  if (variant.sees == Sees::kRight) rule.window = shape.WindowOf(layer);
  if (shape.sinks) rule.sinks = scope.At("sinks");
  return rule;
}

}  // namespace

Documents::Documents(const std::vector<int64_t>& lengths) : lengths(lengths) {
  std::vector<Tensor> all;
  for (const int64_t length : lengths) all.push_back(at::arange(length, at::kLong));
  positions = at::cat(all);
}

Tensor DenseAttention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionRule& rule,
                      const Arithmetic& arithmetic) {
  const int64_t tokens = q.size(0);
  const auto heads_first = [&](const Tensor& x) {  // [heads, tokens, dim]
    return x.to(arithmetic.matmul).transpose(0, 1);
  };
  Tensor scores =
      ProductOfQueries(heads_first(q), heads_first(k).transpose(1, 2), arithmetic) * rule.scale;
  scores = scores.to(arithmetic.inner());
  if (rule.softcap > 0) scores = Capped(scores, rule.softcap);
  Tensor hidden = at::zeros({tokens, tokens}, at::kBool);  // [queries, keys]
  if (rule.causal) hidden = at::ones_like(hidden).triu(1);
  if (rule.window > 0) hidden = hidden.logical_or(at::ones_like(hidden).tril(-rule.window));
  scores = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  if (rule.sinks.defined()) {
    const Tensor sinks = rule.sinks.to(arithmetic.inner()).view({-1, 1, 1});
    scores = at::cat({scores, sinks.expand({-1, tokens, 1})}, -1);
  }
  const Tensor weights = at::softmax(scores, -1).narrow(-1, 0, tokens);
  return ProductOfQueries(weights.to(arithmetic.matmul), heads_first(v), arithmetic)
      .transpose(0, 1);
}

Tensor LongAttention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionRule& rule,
                     const Arithmetic& arithmetic) {
  std::vector<Tensor> outputs;
  for (int64_t head = 0; head < q.size(1); ++head) {
    const auto of_head = [head](const Tensor& all) { return all.narrow(1, head, 1); };
    std::vector<Tensor> inputs = {of_head(q), of_head(k), of_head(v)};
    if (rule.sinks.defined()) inputs.push_back(rule.sinks.narrow(0, head, 1));
    outputs.push_back(Recomputed(
        [rule, arithmetic](const std::vector<Tensor>& given) {
          AttentionRule own = rule;
          if (own.sinks.defined()) own.sinks = given[3];
          return DenseAttention(given[0], given[1], given[2], own, arithmetic);
        },
        inputs));
  }
  return at::cat(outputs, 1);
}

Tensor SelfAttention(const Tensor& x, const WeightScope& scope, const ModelShape& shape,
                     int64_t layer, const Documents& documents, const AttentionVariant& variant,
                     const Arithmetic& arithmetic) {
  const auto make = shape.latent.rank > 0 ? LatentHeads : GroupedHeads;
  Heads heads = make(x, scope, shape, documents.positions, !variant.without_rope, arithmetic);
  heads.k = ForEachQueryHead(heads.k, shape.heads, variant.interleaved_kv);
  heads.v = ForEachQueryHead(heads.v, shape.heads, variant.interleaved_kv);
  const AttentionRule rule = RuleOf(shape, layer, scope, variant);
  const bool across = variant.sees == Sees::kAllBefore || variant.sees == Sees::kAll;
  std::vector<Tensor> outputs;
  int64_t start = 0;
  for (const int64_t length : across ? std::vector{x.size(0)} : documents.lengths) {
    const auto part = [&](const Tensor& all) { return all.narrow(0, start, length); };
    outputs.push_back((length > kShort ? LongAttention : DenseAttention)(
        part(heads.q), part(heads.k), part(heads.v), rule, arithmetic));
    start += length;
  }
  Tensor output = at::cat(outputs, 0);  // [tokens, heads, value dim]
  if (variant.transposed_heads) output = output.transpose(1, 2);
  return Linear(output.flatten(1), scope.Below("o_proj"), Divided::kInputs, arithmetic);
}

}  // namespace bkm
