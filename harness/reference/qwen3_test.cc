// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/reference/qwen3.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "harness/numerics/model_weights.h"

namespace bkm {
namespace {

using at::Tensor;

Tensor Random(at::IntArrayRef sizes, uint64_t seed) {
  return at::randn(sizes, at::make_generator<at::CPUGeneratorImpl>(seed), at::kDouble);
}

double At(const Tensor& x, at::IntArrayRef index) {
  Tensor element = x;
  for (const int64_t i : index) element = element[i];
  return element.item<double>();
}

void ExpectClose(const Tensor& actual, const Tensor& expected) {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  EXPECT_LT((actual - expected).abs().max().item<double>(), 1e-12);
}

// Central differences of a random weighting of f's outputs against autograd, for every element of
// every input.
void CheckGradients(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                    const std::vector<Tensor>& inputs) {
  constexpr double kStep = 1e-6;
  std::vector<Tensor> leaves;
  for (const Tensor& input : inputs) leaves.push_back(input.clone().requires_grad_(true));
  const Tensor output = f(leaves);
  const Tensor weighting = Random(output.sizes(), 99);
  (output * weighting).sum().backward();
  const auto value = [&](const std::vector<Tensor>& at) {
    return (f(at) * weighting).sum().item<double>();
  };
  for (size_t k = 0; k < inputs.size(); ++k) {
    std::vector<Tensor> moved = inputs;
    moved[k] = inputs[k].clone();
    const Tensor flat = moved[k].view(-1);
    const Tensor gradient = leaves[k].grad().contiguous().view(-1);
    for (int64_t i = 0; i < flat.numel(); ++i) {
      flat[i] += kStep;
      const double above = value(moved);
      flat[i] -= 2 * kStep;
      const double below = value(moved);
      flat[i] += kStep;
      EXPECT_NEAR(gradient[i].item<double>(), (above - below) / (2 * kStep), 1e-7)
          << "input " << k << ", element " << i;
    }
  }
}

// The same along one random direction per input, for functions that are too large for every
// element.
void CheckGradientsAlongDirections(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                                   const std::vector<Tensor>& inputs) {
  constexpr double kStep = 1e-6;
  std::vector<Tensor> leaves;
  for (const Tensor& input : inputs) leaves.push_back(input.clone().requires_grad_(true));
  f(leaves).square().sum().backward();
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Tensor direction = Random(inputs[k].sizes(), 1000 + k);
    const auto value = [&](double step) {
      std::vector<Tensor> moved = inputs;
      moved[k] = inputs[k] + step * direction;
      return f(moved).square().sum().item<double>();
    };
    const double expected = (value(kStep) - value(-kStep)) / (2 * kStep);
    EXPECT_NEAR((leaves[k].grad() * direction).sum().item<double>(), expected,
                1e-6 * (1 + std::abs(expected)))
        << "input " << k;
  }
}

const Arithmetic kExact = ExactArithmetic();

TEST(RmsNormTest, DividesByTheRootMeanSquareAndScales) {
  const Tensor x = at::tensor({3.0, 4.0}, at::kDouble).view({1, 2});
  const double root = std::sqrt((9.0 + 16.0) / 2 + 0.5);
  ExpectClose(RmsNorm(x, at::tensor({2.0, -1.0}, at::kDouble), 0.5, kExact),
              at::tensor({6.0 / root, -4.0 / root}, at::kDouble).view({1, 2}));
}

TEST(RmsNormTest, GradientsAgreeWithFiniteDifferences) {
  CheckGradients([](const auto& in) { return RmsNorm(in[0], in[1], 1e-6, kExact); },
                 {Random({3, 5}, 1), Random({5}, 2)});
}

TEST(ApplyRopeTest, TurnsElementsHalfAHeadApart) {
  const Tensor x = Random({3, 2, 4}, 1);
  const Tensor turned = ApplyRope(x, 100.0, kExact);
  for (int64_t t = 0; t < 3; ++t) {
    for (int64_t h = 0; h < 2; ++h) {
      for (int64_t i = 0; i < 2; ++i) {
        const double angle = t * std::pow(100.0, -2.0 * i / 4);
        const double a = At(x, {t, h, i}), b = At(x, {t, h, i + 2});
        EXPECT_NEAR(At(turned, {t, h, i}), a * std::cos(angle) - b * std::sin(angle), 1e-14);
        EXPECT_NEAR(At(turned, {t, h, i + 2}), b * std::cos(angle) + a * std::sin(angle), 1e-14);
      }
    }
  }
}

TEST(ApplyRopeTest, GradientsAgreeWithFiniteDifferences) {
  CheckGradients([](const auto& in) { return ApplyRope(in[0], 100.0, kExact); },
                 {Random({3, 2, 4}, 1)});
}

TEST(CausalAttentionTest, AgreesWithPlainLoopsAndSharesKeysInNeighbouringGroups) {
  constexpr int64_t kTokens = 3, kHeads = 4, kDim = 2;
  const Tensor q = Random({kTokens, kHeads, kDim}, 1);
  const Tensor k = Random({kTokens, 2, kDim}, 2), v = Random({kTokens, 2, kDim}, 3);
  const Tensor out = CausalAttention(q, k, v, kExact);
  for (int64_t t = 0; t < kTokens; ++t) {
    for (int64_t h = 0; h < kHeads; ++h) {
      double total = 0, sums[kDim] = {};
      for (int64_t s = 0; s <= t; ++s) {
        double score = 0;
        for (int64_t d = 0; d < kDim; ++d) score += At(q, {t, h, d}) * At(k, {s, h / 2, d});
        const double weight = std::exp(score / std::sqrt(2.0));
        total += weight;
        for (int64_t d = 0; d < kDim; ++d) sums[d] += weight * At(v, {s, h / 2, d});
      }
      for (int64_t d = 0; d < kDim; ++d) EXPECT_NEAR(At(out, {t, h, d}), sums[d] / total, 1e-13);
    }
  }
}

TEST(CausalAttentionTest, GradientsAgreeWithFiniteDifferences) {
  CheckGradients([](const auto& in) { return CausalAttention(in[0], in[1], in[2], kExact); },
                 {Random({4, 4, 2}, 1), Random({4, 2, 2}, 2), Random({4, 2, 2}, 3)});
}

TEST(LabelLogProbsTest, AreNormalisedAndGatheredAtTheLabel) {
  const Tensor logits = at::tensor({1.0, 2.0, 4.0, 0.0, 0.0, 0.0}, at::kDouble).view({2, 3});
  const double total = std::exp(1.0) + std::exp(2.0) + std::exp(4.0);
  ExpectClose(LabelLogProbs(logits, at::tensor({1, 2}, at::kLong), kExact),
              at::tensor({2.0 - std::log(total), -std::log(3.0)}, at::kDouble));
}

TEST(LabelLogProbsTest, GradientsAgreeWithFiniteDifferences) {
  const Tensor labels = at::tensor({1, 4, 0}, at::kLong);
  CheckGradients([&](const auto& in) { return LabelLogProbs(in[0], labels, kExact); },
                 {Random({3, 5}, 1)});
}

class Qwen3Test : public testing::Test {
 protected:
  Qwen3Test() {
    shape_.hidden = 8;
    shape_.layers = 2;
    shape_.vocabulary = 16;
    shape_.heads = 4;
    shape_.kv_heads = 2;
    shape_.head_dim = 4;
    shape_.feed_forward = 12;
    uint64_t seed = 1;
    for (const WeightShape& weight : WeightsOf(shape_)) {
      weights_[weight.name] = Random(weight.shape, ++seed) * 0.3 + weight.mean;
    }
  }
  Tensor Logits(std::vector<int64_t> ids, const std::vector<int64_t>& lengths) {
    return Qwen3(shape_, kExact).Logits(weights_, at::tensor(ids, at::kLong), lengths);
  }

  ModelShape shape_ = *FindModelShape("qwen3");
  Weights weights_;
};

TEST_F(Qwen3Test, PackedDocumentsAreEachAsIfAlone) {
  const Tensor packed = Logits({3, 4, 5, 6, 7, 8, 9}, {3, 4});
  ExpectClose(packed.narrow(0, 0, 3), Logits({3, 4, 5}, {3}));
  ExpectClose(packed.narrow(0, 3, 4), Logits({6, 7, 8, 9}, {4}));
}

TEST_F(Qwen3Test, ATokenMovesItselfAndWhatFollowsInItsDocumentOnly) {
  const Tensor moved =
      (Logits({3, 4, 5, 6, 7, 8, 9}, {3, 4}) - Logits({3, 4, 5, 6, 10, 8, 9}, {3, 4}))
          .abs()
          .amax(1);
  for (const int64_t t : {0, 1, 2, 3}) EXPECT_EQ(moved[t].item<double>(), 0) << t;
  for (const int64_t t : {4, 5, 6}) EXPECT_GT(moved[t].item<double>(), 1e-6) << t;
}

TEST_F(Qwen3Test, EveryWeightMatters) {
  const Tensor before = Logits({3, 4, 5, 6}, {4});
  for (auto& [name, weight] : weights_) {
    const Tensor kept = weight;
    weight = weight + Random(weight.sizes(), 77) * 0.1;
    EXPECT_GT((Logits({3, 4, 5, 6}, {4}) - before).abs().max().item<double>(), 1e-5) << name;
    weight = kept;
  }
}

TEST_F(Qwen3Test, GradientsOfAllWeightsAgreeWithFiniteDifferences) {
  std::vector<Tensor> inputs;
  for (const auto& [name, weight] : weights_) inputs.push_back(weight);
  const Tensor ids = at::tensor({3, 4, 5, 6, 7}, at::kLong);
  CheckGradientsAlongDirections(
      [&](const auto& in) {
        Weights weights;
        size_t i = 0;
        for (const auto& [name, weight] : weights_) weights[name] = in[i++];
        return LabelLogProbs(Qwen3(shape_, kExact).Logits(weights, ids, {2, 3}), ids, kExact);
      },
      inputs);
}

}  // namespace
}  // namespace bkm
