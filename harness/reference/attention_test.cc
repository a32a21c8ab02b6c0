// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/reference/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/numerics/model_weights.h"
#include "harness/reference/gradient_check.h"

namespace bkm {
namespace {

using at::Tensor;
using Sees = AttentionVariant::Sees;

// softmax(scale q k^T) v over the keys [begin, end) of one head, in plain loops.
double PlainAttention(const Tensor& q, const Tensor& k, const Tensor& v, int64_t t, int64_t h,
                      int64_t d, int64_t begin, int64_t end, double scale, double sink) {
  double total = sink, sum = 0;
  for (int64_t s = begin; s < end; ++s) {
    double score = 0;
    for (int64_t i = 0; i < q.size(2); ++i) score += At(q, {t, h, i}) * At(k, {s, h, i});
    const double weight = std::exp(scale * score);
    total += weight;
    sum += weight * At(v, {s, h, d});
  }
  return sum / total;
}

class DenseAttentionTest : public testing::Test {
 protected:
  void ExpectPlain(const AttentionRule& rule, const std::function<int64_t(int64_t)>& begin,
                   const std::function<int64_t(int64_t)>& end) {
    const Tensor out = DenseAttention(q_, k_, v_, rule, kExact);
    for (int64_t t = 0; t < 5; ++t) {
      for (int64_t h = 0; h < 2; ++h) {
        const double sink = rule.sinks.defined() ? std::exp(At(rule.sinks, {h})) : 0;
        for (int64_t d = 0; d < 2; ++d) {
          EXPECT_NEAR(At(out, {t, h, d}),
                      PlainAttention(q_, k_, v_, t, h, d, begin(t), end(t), rule.scale, sink),
                      1e-13)
              << t << " " << h << " " << d;
        }
      }
    }
  }
  // Values may have another size than keys.
  const Tensor q_ = Random({5, 2, 3}, 1), k_ = Random({5, 2, 3}, 2), v_ = Random({5, 2, 2}, 3);
};

int64_t FromZero(int64_t) { return 0; }
int64_t ToItself(int64_t t) { return t + 1; }

TEST_F(DenseAttentionTest, CausalQueriesSeeThemselvesAndAllBefore) {
  ExpectPlain({.scale = 0.7}, FromZero, ToItself);
}

TEST_F(DenseAttentionTest, AWindowOfThreeIsAQueryAndTheTwoBeforeIt) {
  ExpectPlain(
      {.scale = 0.7, .window = 3}, [](int64_t t) { return std::max<int64_t>(0, t - 2); }, ToItself);
}

TEST_F(DenseAttentionTest, WithoutCausalityAllSeeAll) {
  ExpectPlain({.scale = 0.7, .causal = false}, FromZero, [](int64_t) { return 5; });
}

TEST_F(DenseAttentionTest, ASinkTakesWeightAndGivesNothing) {
  ExpectPlain({.scale = 0.7, .sinks = at::tensor({0.5, -1.0}, at::kDouble)}, FromZero, ToItself);
}

TEST_F(DenseAttentionTest, GradientsAgreeWithFiniteDifferences) {
  CheckGradients(
      [](const auto& in) {
        const AttentionRule rule = {.scale = 0.7, .window = 3, .sinks = in[3]};
        return DenseAttention(in[0], in[1], in[2], rule, kExact);
      },
      {q_, k_, v_, Random({2}, 4)});
}

class SelfAttentionTest : public testing::Test {
 protected:
  explicit SelfAttentionTest(const std::string& family = "gpt_oss")
      : shape_(*FindModelShape(family)) {
    shape_.hidden = 6;
    shape_.layers = 2;
    shape_.heads = 4;
    shape_.kv_heads = 2;
    shape_.head_dim = 4;
    shape_.window = 2;
    uint64_t seed = 1;
    for (const WeightShape& weight : WeightsOf(shape_)) {
      if (weight.name.find("layers.0.self_attn") != std::string::npos)
        weights_[weight.name] = Random(weight.shape, ++seed) + weight.mean;
    }
  }
  Tensor Run(const Tensor& x, const std::vector<int64_t>& lengths, int64_t layer,
             const AttentionVariant& variant = {}) {
    return SelfAttention(x, WeightScope(weights_, "model.layers.0.self_attn."), shape_, layer,
                         Documents(lengths), variant, kExact);
  }
  // For each token of x, whether the outputs of it and later tokens depend on token `moved`.
  std::vector<bool> Moved(const AttentionVariant& variant, int64_t layer, int64_t moved) {
    const Tensor x = Random({6, 6}, 50);
    Tensor other = x.clone();
    other[moved] += 1;
    const Tensor difference =
        (Run(x, {2, 4}, layer, variant) - Run(other, {2, 4}, layer, variant)).abs().amax(1);
    std::vector<bool> result;
    for (int64_t t = 0; t < 6; ++t) result.push_back(difference[t].item<double>() > 1e-9);
    return result;
  }

  ModelShape shape_;
  Weights weights_;
};

// Documents of 2 and 4 tokens, a window of 2 on even layers.
TEST_F(SelfAttentionTest, EachVariantReachesTheTokensItDescribes) {
  EXPECT_EQ(Moved({}, 0, 2), (std::vector<bool>{0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(Moved({}, 1, 2), (std::vector<bool>{0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(Moved({.sees = Sees::kWithoutWindow}, 0, 2), (std::vector<bool>{0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(Moved({.sees = Sees::kDocument}, 0, 3), (std::vector<bool>{0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(Moved({.sees = Sees::kAllBefore}, 0, 1), (std::vector<bool>{0, 1, 1, 1, 1, 1}));
  EXPECT_EQ(Moved({.sees = Sees::kAll}, 0, 5), (std::vector<bool>{1, 1, 1, 1, 1, 1}));
}

TEST_F(SelfAttentionTest, PackedDocumentsAreEachAsIfAlone) {
  const Tensor x = Random({6, 6}, 50);
  const Tensor packed = Run(x, {2, 4}, 1);
  ExpectClose(packed.narrow(0, 2, 4), Run(x.narrow(0, 2, 4), {4}, 1));
}

TEST_F(SelfAttentionTest, EveryVariantGivesADifferentAnswer) {
  const Tensor x = Random({6, 6}, 50);
  std::vector<Tensor> answers = {Run(x, {2, 4}, 1)};
  for (const AttentionVariant& variant :
       {AttentionVariant{.without_rope = true}, AttentionVariant{.transposed_heads = true},
        AttentionVariant{.interleaved_kv = true}, AttentionVariant{.sees = Sees::kAll}}) {
    answers.push_back(Run(x, {2, 4}, 1, variant));
    for (size_t i = 0; i + 1 < answers.size(); ++i) {
      EXPECT_GT((answers.back() - answers[i]).abs().mean().item<double>(), 0.01)
          << answers.size() << " " << i;
    }
  }
}

// With one head, transposed features and interleaved keys change nothing.
TEST_F(SelfAttentionTest, VariantsOfManyHeadsAreRightWithOne) {
  shape_.heads = shape_.kv_heads = 1;
  for (const auto& [name, rows] :
       std::map<std::string, int64_t>{{"q_proj", 4}, {"k_proj", 4}, {"v_proj", 4}}) {
    const std::string prefix = "model.layers.0.self_attn." + name;
    weights_[prefix + ".weight"] = Random({rows, 6}, 7);
    weights_[prefix + ".bias"] = Random({rows}, 8);
  }
  weights_["model.layers.0.self_attn.sinks"] = Random({1}, 9);
  weights_["model.layers.0.self_attn.o_proj.weight"] = Random({6, 4}, 10);
  const Tensor x = Random({6, 6}, 50);
  ExpectClose(Run(x, {2, 4}, 1, {.transposed_heads = true, .interleaved_kv = true}),
              Run(x, {2, 4}, 1));
}

TEST(LongAttentionTest, IsDenseAttentionWithItsGradients) {
  const auto run = [](auto attention, bool has_sinks) {
    std::vector<Tensor> inputs = {Random({5, 2, 3}, 1), Random({5, 2, 3}, 2), Random({5, 2, 2}, 3)};
    if (has_sinks) inputs.push_back(Random({2}, 4));
    for (Tensor& input : inputs) input.requires_grad_(true);
    AttentionRule rule = {.scale = 0.5};
    if (has_sinks) rule.sinks = inputs[3];
    std::vector<Tensor> results = {attention(inputs[0], inputs[1], inputs[2], rule, kExact)};
    (results[0] * Random({5, 2, 2}, 5)).sum().backward();
    for (const Tensor& input : inputs) results.push_back(input.grad());
    return results;
  };
  for (const bool has_sinks : {false, true}) {
    const std::vector<Tensor> all = run(DenseAttention, has_sinks);
    const std::vector<Tensor> by_head = run(LongAttention, has_sinks);
    ASSERT_EQ(all.size(), by_head.size());
    for (size_t i = 0; i < all.size(); ++i)
      EXPECT_LT((all[i] - by_head[i]).abs().max().item<double>(), 1e-15) << i;
  }
}

}  // namespace
}  // namespace bkm
