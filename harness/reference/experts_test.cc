// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/reference/experts.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/reference/gradient_check.h"

namespace bkm {
namespace {

using at::Tensor;

TEST(ChooseExpertsTest, TakesTheHighestAndTheirSoftmax) {
  const Tensor logits = at::tensor({0.0, 2.0, 1.0, -1.0}, at::kDouble).view({1, 4});
  const double total = 1 + std::exp(2.0) + std::exp(1.0) + std::exp(-1.0);
  const Routing routing = ChooseExperts(logits, {}, {.count = 4, .active = 2});
  EXPECT_TRUE(at::equal(routing.experts, at::tensor({1, 2}, at::kLong).view({1, 2})));
  ExpectClose(routing.weights,
              at::tensor({std::exp(2.0) / total, std::exp(1.0) / total}, at::kDouble).view({1, 2}));
}

TEST(ChooseExpertsTest, NormalisedWeightsAreTheSoftmaxOfTheChosen) {
  const Tensor logits = Random({5, 8}, 1);
  const Routing routing = ChooseExperts(logits, {}, {.count = 8, .active = 3, .normalised = true});
  ExpectClose(routing.weights, at::softmax(logits.gather(-1, routing.experts), -1));
}

TEST(ChooseExpertsTest, ACorrectionChangesTheChoiceAndNotTheWeights) {
  const Tensor logits = at::tensor({1.0, 0.9, 0.0}, at::kDouble).view({1, 3});
  const Tensor correction = at::tensor({0.0, 0.1, 0.0}, at::kFloat);
  const Routing routing = ChooseExperts(logits, correction, {.count = 3, .active = 1});
  EXPECT_EQ(routing.experts.item<int64_t>(), 1);
  EXPECT_DOUBLE_EQ(routing.weights.item<double>(), at::softmax(logits, -1)[0][1].item<double>());
}

TEST(ChooseExpertsTest, CorrectedWeightsAreThoseOfAKnownFault) {
  const Tensor logits = at::tensor({1.0, 0.9, 0.0}, at::kDouble).view({1, 3});
  const Tensor correction = at::tensor({0.0, 0.5, 0.0}, at::kDouble);
  const ExpertsShape shape = {.count = 3, .active = 1, .corrected = true};
  EXPECT_DOUBLE_EQ(ChooseExperts(logits, correction, shape).weights.item<double>(),
                   at::softmax(logits, -1)[0][1].item<double>() + 0.5);
}

// As transformers' DeepseekV3TopkRouter, written out for one token.
TEST(ChooseExpertsTest, ExpertsOutsideTheBestGroupsAreNotChosen) {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  // The best expert is in a group that is left out: its two best are worse than those of others.
  const Tensor logits = at::tensor({3.0, -3.0, 1.0, 1.1, 0.9, 1.2}, at::kDouble).view({1, 6});
  const ExpertsShape shape = {.count = 6,
                              .active = 3,
                              .normalised = true,
                              .sigmoid = true,
                              .groups = 3,
                              .active_groups = 2,
                              .scale = 2.5};
  const double total = sigmoid(1.2) + sigmoid(1.1) + sigmoid(1.0);
  const auto expect = [&](const Tensor& correction, std::vector<int64_t> experts,
                          std::vector<double> weights) {
    const Routing routing = ChooseExperts(logits, correction, shape);
    EXPECT_TRUE(at::equal(routing.experts, at::tensor(experts, at::kLong).view({1, 3})));
    ExpectClose(routing.weights, at::tensor(weights, at::kDouble).view({1, 3}));
  };
  expect({}, {5, 3, 2},
         {2.5 * sigmoid(1.2) / total, 2.5 * sigmoid(1.1) / total, 2.5 * sigmoid(1.0) / total});
  // A correction may bring a group in; it never changes a weight.
  const double other = sigmoid(3.0) + sigmoid(-3.0) + sigmoid(1.2);
  expect(at::tensor({0.0, 1.0, -0.5, -0.5, 0.0, 0.0}, at::kFloat), {1, 0, 5},
         {2.5 * sigmoid(-3.0) / other, 2.5 * sigmoid(3.0) / other, 2.5 * sigmoid(1.2) / other});
}

TEST(ClampedSwiGluTest, ClampsTheGateFromAboveAndUpFromBothSides) {
  const auto value = [](double gate, double up) {
    return ClampedSwiGlu(at::tensor({gate, up}, at::kDouble), 7).item<double>();
  };
  const auto plain = [](double gate, double up) {
    return (up + 1) * gate / (1 + std::exp(-1.702 * gate));
  };
  EXPECT_DOUBLE_EQ(value(2, 3), plain(2, 3));
  EXPECT_DOUBLE_EQ(value(9, 8), plain(7, 7));
  EXPECT_DOUBLE_EQ(value(-9, -8), plain(-9, -7));
}

class MixtureOfExpertsTest : public testing::Test {
 protected:
  Tensor Run(const Weights& weights, const ExpertsShape& shape) {
    return MixtureOfExperts(x_, WeightScope(weights, ""), shape, kExact);
  }
  const Tensor x_ = Random({5, 3}, 1);
};

TEST_F(MixtureOfExpertsTest, IsTheWeightedSumOfEachTokensExpertsAndTheSharedOne) {
  const ExpertsShape shape = {.count = 3, .active = 2, .hidden = 4, .shared = 1};
  Weights weights = {{"gate.weight", Random({3, 3}, 2)}};
  uint64_t seed = 10;
  for (const char* name : {"experts.0.", "experts.1.", "experts.2.", "shared_experts."}) {
    weights[std::string(name) + "gate_proj.weight"] = Random({4, 3}, ++seed);
    weights[std::string(name) + "up_proj.weight"] = Random({4, 3}, ++seed);
    weights[std::string(name) + "down_proj.weight"] = Random({3, 4}, ++seed);
  }
  const Routing routing = ChooseExperts(at::matmul(x_, weights["gate.weight"].t()), {}, shape);
  const WeightScope scope(weights, "");
  const Tensor actual = Run(weights, shape);
  for (int64_t t = 0; t < 5; ++t) {
    const Tensor token = x_.narrow(0, t, 1);
    Tensor expected = FeedForward(token, scope.Below("shared_experts"), kExact);
    for (int64_t k = 0; k < 2; ++k) {
      const int64_t expert = routing.experts[t][k].item<int64_t>();
      expected = expected +
                 At(routing.weights, {t, k}) *
                     FeedForward(token, scope.Below("experts." + std::to_string(expert)), kExact);
    }
    ExpectClose(actual.narrow(0, t, 1), expected);
  }
}

TEST_F(MixtureOfExpertsTest, ClampedExpertsHaveAllMatricesInOneTensor) {
  const ExpertsShape shape = {.count = 3, .active = 2, .hidden = 4, .normalised = true, .limit = 1};
  const Weights weights = {{"router.weight", Random({3, 3}, 2)},
                           {"router.bias", Random({3}, 3)},
                           {"experts.gate_up_proj", Random({3, 3, 8}, 4)},
                           {"experts.gate_up_proj_bias", Random({3, 8}, 5)},
                           {"experts.down_proj", Random({3, 4, 3}, 6)},
                           {"experts.down_proj_bias", Random({3, 3}, 7)}};
  const Tensor logits = at::linear(x_, weights.at("router.weight"), weights.at("router.bias"));
  const Routing routing = ChooseExperts(logits, {}, shape);
  const Tensor actual = Run(weights, shape);
  for (int64_t t = 0; t < 5; ++t) {
    Tensor expected = at::zeros({3}, at::kDouble);
    for (int64_t k = 0; k < 2; ++k) {
      const int64_t e = routing.experts[t][k].item<int64_t>();
      const Tensor inner = at::matmul(x_[t], weights.at("experts.gate_up_proj")[e]) +
                           weights.at("experts.gate_up_proj_bias")[e];
      const Tensor output =
          at::matmul(ClampedSwiGlu(inner, 1), weights.at("experts.down_proj")[e]) +
          weights.at("experts.down_proj_bias")[e];
      expected = expected + At(routing.weights, {t, k}) * output.view(-1);
    }
    ExpectClose(actual[t], expected);
  }
}

}  // namespace
}  // namespace bkm
