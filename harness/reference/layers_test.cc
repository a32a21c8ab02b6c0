// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/reference/layers.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/reference/gradient_check.h"

namespace bkm {
namespace {

using at::Tensor;

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

TEST(LinearTest, AddsABiasWhereThereIsOne) {
  Weights weights = {{"a.weight", Random({2, 3}, 1)}};
  const WeightScope scope(weights, "a.");
  const Tensor x = Random({4, 3}, 2);
  const Tensor product = at::matmul(x, weights["a.weight"].t());
  ExpectClose(Linear(x, scope, Divided::kNone, kExact), product);
  weights["a.bias"] = Random({2}, 3);
  ExpectClose(Linear(x, scope, Divided::kNone, kExact), product + weights["a.bias"]);
}

// As ranks of tensor parallelism do: each rounds its part, and the parts are added.
TEST(ProductTest, PartsAreRoundedBeforeTheyAreAdded) {
  Arithmetic halves = kExact;
  halves.reductions.features = 2;
  const Tensor x = Random({4, 64}, 1).to(at::kBFloat16).requires_grad_(true);
  const Tensor weight = Random({64, 6}, 2).to(at::kBFloat16);
  const auto gradient = [&x](const Tensor& product) {
    x.mutable_grad() = Tensor();
    product.sum().backward();
    return x.grad();
  };
  const Tensor whole = at::matmul(x, weight);
  const Tensor inputs = Product(x, weight, Divided::kInputs, halves);
  EXPECT_TRUE(at::equal(inputs, at::matmul(x.narrow(1, 0, 32), weight.narrow(0, 0, 32)) +
                                    at::matmul(x.narrow(1, 32, 32), weight.narrow(0, 32, 32))));
  EXPECT_FALSE(at::equal(inputs, whole));
  const Tensor divided = gradient(Product(x, weight, Divided::kOutputs, halves));
  EXPECT_TRUE(at::equal(divided, gradient(at::matmul(x, weight.narrow(1, 0, 3))) +
                                     gradient(at::matmul(x, weight.narrow(1, 3, 3)))));
  EXPECT_FALSE(at::equal(divided, gradient(whole)));
  EXPECT_TRUE(at::equal(Product(x, weight, Divided::kNone, halves), whole));
}

TEST(RmsNormTest, RanksAddUpTheRoundedGradientsOfItsWeight) {
  Arithmetic halves = kExact;
  halves.reductions.features = 2;
  const Tensor x = Random({8, 16}, 1);
  const Tensor weight = Random({16}, 2).to(at::kBFloat16).requires_grad_(true);
  const auto gradient = [&](const Tensor& part, const Arithmetic& arithmetic) {
    weight.mutable_grad() = Tensor();
    RmsNorm(part, weight, 1e-6, arithmetic).sum().backward();
    return weight.grad();
  };
  const Tensor in_parts = gradient(x, halves);
  EXPECT_TRUE(at::equal(in_parts,
                        gradient(x.narrow(0, 0, 4), kExact) + gradient(x.narrow(0, 4, 4), kExact)));
  EXPECT_FALSE(at::equal(in_parts, gradient(x, kExact)));
}

TEST(LabelLogProbsTest, AreNormalisedAndGatheredAtTheLabel) {
  const Tensor logits = at::tensor({1.0, 2.0, 4.0, 0.0, 0.0, 0.0}, at::kDouble).view({2, 3});
  const double total = std::exp(1.0) + std::exp(2.0) + std::exp(4.0);
  ExpectClose(LabelLogProbs(logits, at::tensor({1, 2}, at::kLong), kExact),
              at::tensor({2.0 - std::log(total), -std::log(3.0)}, at::kDouble));
}

TEST(EntropyTest, IsThatOfEachTokensDistribution) {
  const Tensor logits = at::tensor({5.0, 5.0, 5.0, 0.0, std::log(3.0), -1e9}, at::kDouble);
  ExpectClose(Entropy(logits.view({2, 3}), kExact),
              at::tensor({std::log(3.0), std::log(4.0) - 0.75 * std::log(3.0)}, at::kDouble));
}

TEST(LabelLogProbsTest, GradientsAgreeWithFiniteDifferences) {
  const Tensor labels = at::tensor({1, 4, 0}, at::kLong);
  CheckGradients([&](const auto& in) { return LabelLogProbs(in[0], labels, kExact); },
                 {Random({3, 5}, 1)});
}

}  // namespace
}  // namespace bkm
