// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/reference/sft_step.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/numerics/model_weights.h"
#include "harness/numerics/optimizer_arithmetic.h"
#include "harness/reference/gradient_check.h"

namespace bkm {
namespace {

using at::Tensor;

class SftTest : public testing::Test {
 protected:
  SftTest() {
    shape_.hidden = 8;
    shape_.layers = 1;
    shape_.vocabulary = 16;
    shape_.heads = 2;
    shape_.kv_heads = 1;
    shape_.head_dim = 4;
    shape_.feed_forward = 6;
    uint64_t seed = 1;
    for (const WeightShape& weight : WeightsOf(shape_)) {
      weights_[weight.name] =
          at::randn(weight.shape, at::make_generator<at::CPUGeneratorImpl>(++seed), at::kDouble) +
          weight.mean;
      for (int64_t i = 0; i < weight.numel(); ++i) places_[weight.name].push_back(i);
    }
  }
  static std::vector<double> ToDoubles(const Tensor& x) {
    const Tensor flat = x.detach().contiguous().view(-1);
    return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
  }

  ModelShape shape_ = *FindModelShape("qwen3");
  Weights weights_;
  std::map<std::string, std::vector<int64_t>> places_;
  // Two documents; the first token of each has no loss.
  const PackedBatch batch_ = {.input_ids = {3, 4, 5, 2, 6, 7, 2},
                              .loss_mask = {0, 0, 1, 1, 0, 1, 1},
                              .document_lengths = {4, 3}};
};

TEST_F(SftTest, LossIsTheMeanOverMaskedLabels) {
  const Arithmetic exact = ExactArithmetic();
  const Decoder model(shape_, exact);
  const LossAndLogProbs result = SftLoss(model, weights_, batch_, exact);
  const Tensor scores =
      model.Logits(weights_, at::tensor(batch_.input_ids, at::kLong), {4, 3}).log_softmax(-1);
  const auto log_prob = [&](int64_t t, int64_t label) { return scores[t][label].item<double>(); };
  EXPECT_NEAR(result.loss.item<double>(),
              -(log_prob(1, 5) + log_prob(2, 2) + log_prob(4, 7) + log_prob(5, 2)) / 4, 1e-14);
  EXPECT_EQ(ToDoubles(result.log_probs),
            (std::vector<double>{log_prob(0, 4), log_prob(1, 5), log_prob(2, 2), 0, log_prob(4, 7),
                                 log_prob(5, 2), 0}));
}

// Every position has its own value: nothing is shifted, and the last tokens of documents count.
TEST_F(SftTest, WhatFollowsADocumentIsPredictedByItsLastToken) {
  const Arithmetic exact = ExactArithmetic();
  const Decoder model(shape_, exact);
  PackedBatch cut = batch_;  // the same documents without their last tokens
  cut.input_ids = {3, 4, 5, 6, 7};
  cut.loss_mask = {0, 0, 1, 0, 1};
  cut.document_lengths = {3, 2};
  cut.after = {2, 2};
  const LossAndLogProbs whole = SftLoss(model, weights_, batch_, exact);
  const LossAndLogProbs seen = SftLoss(model, weights_, cut, exact);
  const std::vector<double> expected = ToDoubles(whole.log_probs),
                            other = ToDoubles(seen.log_probs);
  for (const auto& [position, label] : {std::pair(0, 0), {1, 1}, {2, 2}, {4, 3}, {5, 4}})
    EXPECT_NEAR(other[label], expected[position], 1e-12) << position;
  EXPECT_NEAR(seen.loss.item<double>(), whole.loss.item<double>(), 1e-12);
}

TEST_F(SftTest, ACriticsLossIsHalfTheMeanSquareOfItsValuesLessOne) {
  shape_.value_head = true;
  weights_["score.weight"] = at::ones({1, 8}, at::kDouble);
  weights_["score.bias"] = at::full({1}, 0.25, at::kDouble);
  const Arithmetic exact = ExactArithmetic();
  const Decoder critic(shape_, exact);
  const std::vector<double> values =
      ToDoubles(critic.Logits(weights_, at::tensor(batch_.input_ids, at::kLong), {4, 3}));
  ASSERT_EQ(values.size(), 7);
  const LossAndLogProbs result = SftLoss(critic, weights_, batch_, exact);
  const auto part = [&](int64_t t) { return (values[t] - 1) * (values[t] - 1) / 2; };
  EXPECT_NEAR(result.loss.item<double>(), (part(2) + part(3) + part(5) + part(6)) / 4, 1e-14);
  EXPECT_EQ(ToDoubles(result.log_probs), values);
  weights_["score.bias"] += 1;
  const Tensor moved = SftLoss(critic, weights_, batch_, exact).log_probs - result.log_probs;
  ExpectClose(moved, at::ones({7}, at::kDouble));
}

TEST_F(SftTest, TheTemperatureDividesLogitsForLogProbsLossAndEntropy) {
  const Arithmetic exact = ExactArithmetic();
  const Decoder model(shape_, exact);
  const Tensor scores =
      (model.Logits(weights_, at::tensor(batch_.input_ids, at::kLong), {4, 3}) / 0.5)
          .log_softmax(-1);
  const LossAndLogProbs result = SftLoss(model, weights_, batch_, exact, {}, {0.5, true});
  const std::vector<double> log_probs = ToDoubles(result.log_probs);
  EXPECT_NEAR(log_probs[1], scores[1][5].item<double>(), 1e-12);
  EXPECT_NEAR(result.loss.item<double>(),
              -(log_probs[1] + log_probs[2] + log_probs[4] + log_probs[5]) / 4, 1e-12);
  ExpectClose(result.entropy, -(scores.exp() * scores).sum(-1));
  EXPECT_FALSE(SftLoss(model, weights_, batch_, exact).entropy.defined());
}

// One token of each case: written out here by hand, from the papers' formulas.
TEST_F(SftTest, APolicysLossIsClippedWhereItWouldGoFurther) {
  const Arithmetic exact = ExactArithmetic();
  const Decoder model(shape_, exact);
  const PpoSettings ppo = {.clip_low = 0.2, .clip_high = 0.3, .clip_dual = 2.5};
  const std::vector<double> log_probs =
      ToDoubles(SftLoss(model, weights_, batch_, exact).log_probs);
  // What position t predicts is token t + 1.
  const auto loss_of = [&](double ratio, float advantage) {
    PackedBatch batch = batch_;
    batch.loss_mask = {0, 0, 1, 0, 0, 0, 0};
    batch.rollout = {std::vector<float>(7, -1), std::vector<float>(7, 9)};
    batch.rollout.old[2] = static_cast<float>(log_probs[1] - std::log(ratio));
    batch.rollout.credit[2] = advantage;
    return SftLoss(model, weights_, batch, exact, {}, {.ppo = ppo}).loss.item<double>();
  };
  EXPECT_NEAR(loss_of(1.1, 2), -2.2, 1e-5);  // as it is
  EXPECT_NEAR(loss_of(1.7, 2), -2.6, 1e-5);  // no more than 1.3 of a good token
  EXPECT_NEAR(loss_of(0.5, 2), -1.0, 1e-5);  // but a good token may become likelier again
  EXPECT_NEAR(loss_of(0.5, -2), 1.6, 1e-5);  // no less than 0.8 of a bad one
  EXPECT_NEAR(loss_of(1.7, -2), 3.4, 1e-5);  // which may become less likely
  EXPECT_NEAR(loss_of(4.0, -2), 5.0, 1e-5);  // up to 2.5 times its advantage
}

TEST_F(SftTest, ARolloutsLossIsTheMeanOverWhatCounts) {
  const Arithmetic exact = ExactArithmetic();
  const Decoder model(shape_, exact);
  PackedBatch batch = batch_;
  const std::vector<double> log_probs = ToDoubles(SftLoss(model, weights_, batch, exact).log_probs);
  batch.rollout.credit = {9, 9, 1, -2, 9, 0.5, 0};
  for (const int t : {6, 0, 1, 2, 3, 4, 5})
    batch.rollout.old.push_back(static_cast<float>(log_probs[t]));  // ratio 1
  EXPECT_NEAR(SftLoss(model, weights_, batch, exact).loss.item<double>(), -(1 - 2 + 0.5) / 4, 1e-6);
}

TEST_F(SftTest, ACriticsLossOnARolloutIsTheLargerOfPlainAndClipped) {
  shape_.value_head = true;
  weights_["score.weight"] = at::ones({1, 8}, at::kDouble);
  weights_["score.bias"] = at::full({1}, 0.25, at::kDouble);
  const Arithmetic exact = ExactArithmetic();
  const Decoder critic(shape_, exact);
  PackedBatch batch = batch_;
  batch.loss_mask = {0, 0, 1, 0, 0, 0, 0};
  const double value = ToDoubles(SftLoss(critic, weights_, batch, exact).log_probs)[1];
  const auto loss_of = [&](double old, double aim) {
    batch.rollout = {std::vector<float>(7, 0), std::vector<float>(7, 0)};
    batch.rollout.old[2] = static_cast<float>(value + old);
    batch.rollout.credit[2] = static_cast<float>(value + aim);
    return SftLoss(critic, weights_, batch, exact, {}, {.ppo = {.clip_value = 0.5}})
        .loss.item<double>();
  };
  EXPECT_NEAR(loss_of(0.25, 2), 2, 1e-5);    // within the bound
  EXPECT_NEAR(loss_of(-2, 1), 3.125, 1e-5);  // v is above: clipped to v - 1.5, 2.5 away
  EXPECT_NEAR(loss_of(-2, -1), 0.5, 1e-5);   // the plain one is larger
}

// The judge and the reference must use the same arithmetic: a judge that recomputes the update from
// the reference's observations finds it right.
TEST_F(SftTest, ClippingAndAdamWAgreeWithTheJudgesArithmetic) {
  const OptimizerSettings settings = {.learning_rate = 0.01, .weight_decay = 0.1, .clip_norm = 0.5};
  SftTrainer trainer(Decoder(shape_, ExactArithmetic()), weights_, settings, ExactArithmetic());
  std::map<std::string, AdamWMoments> moments;
  for (int step = 0; step < 3; ++step) {
    std::map<std::string, std::vector<double>> before;
    for (const auto& [name, weight] : trainer.weights()) before[name] = ToDoubles(weight);
    const StepFacts facts = trainer.Observe(batch_, places_);
    trainer.Update();
    ASSERT_GT(facts.total_norm, settings.clip_norm) << "nothing was clipped";
    std::vector<double> norms;
    for (const auto& [name, weight] : facts.weights) {
      norms.push_back(weight.gradient_norm);
      EXPECT_NEAR(weight.gradient_norm, TotalNorm(weight.gradient), 1e-14) << name;
      EXPECT_NEAR(weight.parameter_norm, TotalNorm(before[name]), 1e-12) << name;
      AdamWStep(settings, weight.gradient, moments[name], before[name]);
      const std::vector<double> after = ToDoubles(trainer.weights().at(name));
      for (size_t i = 0; i < after.size(); ++i) EXPECT_NEAR(after[i], before[name][i], 1e-14);
    }
    EXPECT_NEAR(TotalNorm(norms), settings.clip_norm, 1e-5);
  }
}

TEST_F(SftTest, TrainingLowersTheLossAndLeavesTheGivenWeightsAlone) {
  const Tensor kept = weights_.at("model.norm.weight").clone();
  SftTrainer trainer(Decoder(shape_, ExactArithmetic()), weights_, {.learning_rate = 0.01},
                     ExactArithmetic());
  const double first = trainer.Observe(batch_, {}).loss;
  trainer.Update();
  EXPECT_LT(trainer.Observe(batch_, {}).loss, first);
  EXPECT_TRUE(at::equal(weights_.at("model.norm.weight"), kept));
}

}  // namespace
}  // namespace bkm
