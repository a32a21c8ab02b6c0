// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/model_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/numerics/rope_frequencies.h"

namespace bkm {
namespace {

// A norm of the layer, one of its attention and the last one.
std::vector<ObservedNorm> Norms(double layer, double attention, double last) {
  return {{"model.layers.0.input_layernorm", layer},
          {"model.layers.0.self_attn.kv_a_layernorm", attention},
          {"model.norm", last}};
}
std::vector<ObservedNorm> Norms(double epsilon) { return Norms(epsilon, epsilon, epsilon); }

ModelShape Qwen3() { return *FindModelShape("qwen3"); }

TEST(ModelCheckTest, NumbersOfTheConfigurationPass) {
  EXPECT_EQ(CheckModel({Norms(1e-6), 1e6 * (1 + 1e-5)}, Qwen3()).outcome, ClaimOutcome::kPassed);
  EXPECT_EQ(CheckModel({Norms(static_cast<float>(1e-6)), {}}, Qwen3()).outcome,
            ClaimOutcome::kPassed);
  EXPECT_EQ(CheckModel({}, Qwen3()).outcome, ClaimOutcome::kUnseen) << "nobody looked";
}

TEST(ModelCheckTest, OneNormWithAnotherEpsilonFails) {
  const CheckResult result = CheckModel({Norms(1e-6, 1e-6, 1e-5), 1e6}, Qwen3());
  EXPECT_EQ(result.outcome, ClaimOutcome::kFailed);
  EXPECT_EQ(result.reason, "config-ignored");
  EXPECT_EQ(result.stage, Stage::kLoad);
  EXPECT_EQ(result.message, "the epsilon of model.norm is 1e-05, and the configuration says 1e-06");
}

TEST(ModelCheckTest, OnlyLatentNormsHaveTheEpsilonOfLatentVectors) {
  ModelShape deepseek = *FindModelShape("deepseek_v3_published");
  deepseek.norm_epsilon = 1e-5;  // as --config rms_norm_eps=1e-05
  const auto outcome = [&](std::vector<ObservedNorm> norms) {
    return CheckModel({std::move(norms), {}}, deepseek).outcome;
  };
  EXPECT_EQ(outcome(Norms(1e-5, 1e-6, 1e-5)), ClaimOutcome::kPassed);
  EXPECT_EQ(outcome(Norms(1e-5)), ClaimOutcome::kFailed) << "the latent norms, too";
  EXPECT_EQ(outcome(Norms(1e-6)), ClaimOutcome::kFailed) << "rms_norm_eps is ignored everywhere";
  EXPECT_EQ(outcome(Norms(1e-5, 1e-6, 1e-6)), ClaimOutcome::kFailed);
  EXPECT_EQ(outcome(Norms(1e-5, 1e-4, 1e-5)), ClaimOutcome::kFailed);
  EXPECT_EQ(outcome({{"layers.0.attention.kv_norm", 1e-6}}), ClaimOutcome::kPassed);
  EXPECT_EQ(outcome({{"layers.0.attention_norm", 1e-6}}), ClaimOutcome::kFailed);
  EXPECT_EQ(outcome({{"attention", 1e-6}}), ClaimOutcome::kFailed);
  EXPECT_EQ(
      CheckModel({Norms(1e-6), {}}, deepseek).message,
      "the epsilon of model.layers.0.input_layernorm is 1e-06, and the configuration says 1e-05; "
      "and 1 more");
  // torchtitan's flavor has one epsilon, and no other model has such norms.
  EXPECT_EQ(CheckModel({Norms(1e-5), {}}, *FindModelShape("deepseek_v3")).outcome,
            ClaimOutcome::kPassed);
  EXPECT_EQ(CheckModel({Norms(1e-5, 1e-6, 1e-5), {}}, *FindModelShape("deepseek_v3")).outcome,
            ClaimOutcome::kFailed);
  EXPECT_EQ(CheckModel({Norms(1e-6, 1e-5, 1e-6), {}}, Qwen3()).outcome, ClaimOutcome::kFailed);
}

TEST(ModelCheckTest, AnOlderObservationWithoutNamesProvesNoLatentNorm) {
  const ModelShape deepseek = *FindModelShape("deepseek_v3");
  const auto older = [](std::vector<double> epsilons) {
    ObservedModel model;
    model.norm_epsilons = std::move(epsilons);
    return model;
  };
  EXPECT_EQ(CheckModel(older({1e-5}), deepseek).outcome, ClaimOutcome::kPassed);
  EXPECT_EQ(CheckModel(older({1e-6, 1e-5}), deepseek).outcome, ClaimOutcome::kUnseen);
  EXPECT_EQ(CheckModel(older({1e-6}), Qwen3()).outcome, ClaimOutcome::kPassed);
  EXPECT_EQ(CheckModel(older({1e-6, 1e-5}), Qwen3()).outcome, ClaimOutcome::kFailed);
}

TEST(ModelCheckTest, AnotherBaseOfTheRotationFails) {
  EXPECT_EQ(CheckModel({Norms(1e-6), 1e4}, Qwen3()).message,
            "the base of the rotary embedding is 10000, and the configuration says 1e+06");
}

TEST(ModelCheckTest, FrequenciesOfEveryModelAsTheConfigurationSaysPass) {
  for (const char* family :
       {"qwen3", "llama3", "deepseek_v3", "deepseek_v3_published", "gpt_oss", "qwen3_moe"}) {
    const ModelShape shape = *FindModelShape(family);
    std::vector<double> built = ExactRopeFrequencies(shape.rope, RotatedDim(shape));
    for (double& frequency : built) frequency = static_cast<float>(frequency) * (1 + 1e-6);
    const ObservedModel model = {Norms(shape.norm_epsilon), shape.rope.theta, built};
    EXPECT_EQ(CheckModel(model, shape).outcome, ClaimOutcome::kPassed) << family;
  }
}

TEST(ModelCheckTest, AScalingThatIsLeftOutOrWrongInOnePairFails) {
  const ModelShape shape = *FindModelShape("llama3");
  RopeShape unscaled = shape.rope;
  unscaled.scaling = "default";
  ObservedModel model = {Norms(shape.norm_epsilon), shape.rope.theta,
                         ExactRopeFrequencies(unscaled, shape.head_dim)};
  EXPECT_THAT(CheckModel(model, shape).message,
              ::testing::MatchesRegex("the frequency of pair [0-9]+ of [0-9]+ of the rotary "
                                      "embedding \\(without its scaling llama3\\) is .*, and the "
                                      "configuration says .*"));
  model.rope_frequencies = ExactRopeFrequencies(shape.rope, shape.head_dim);
  model.rope_frequencies[7] *= 1.01;
  const CheckResult result = CheckModel(model, shape);
  EXPECT_EQ(result.reason, "config-ignored");
  EXPECT_THAT(result.message, ::testing::StartsWith("the frequency of pair 7 of "));
  EXPECT_THAT(result.message, ::testing::Not(::testing::HasSubstr("scaling")));
  model.rope_frequencies[7] = std::nan("");
  EXPECT_EQ(CheckModel(model, shape).outcome, ClaimOutcome::kFailed);
  model.rope_frequencies.pop_back();
  EXPECT_THAT(CheckModel(model, shape).message, ::testing::HasSubstr("the number of pairs"));
}

TEST(ModelCheckTest, EveryPlaceIsToldTheWorstFirst) {
  const ModelShape shape = Qwen3();
  ObservedModel model = {Norms(1e-6, 1e-5, 2e-6), shape.rope.theta,
                         ExactRopeFrequencies(shape.rope, shape.head_dim)};
  model.rope_frequencies[3] *= 1.01;
  const CheckResult result = CheckModel(model, shape);
  ASSERT_EQ(result.places.size(), 3u);
  EXPECT_EQ(result.places[0].where, "model.layers.0.self_attn.kv_a_layernorm");
  EXPECT_EQ(result.places[1].where, "model.norm");
  EXPECT_EQ(result.places[2].where, "pair 3");
  EXPECT_EQ(result.message,
            "the epsilon of model.layers.0.self_attn.kv_a_layernorm is 1e-05, and the "
            "configuration says 1e-06; and 2 more");
}

TEST(ModelCheckTest, FrequenciesThatAreRoundedToBf16AreNoOtherBase) {
  for (const char* family : {"qwen3", "llama3", "gpt_oss"}) {
    const ModelShape shape = *FindModelShape(family);
    const std::vector<double> wanted = ExactRopeFrequencies(shape.rope, RotatedDim(shape));
    ObservedModel model = {Norms(shape.norm_epsilon), std::nullopt, wanted};
    // To the seven bits after the first one.
    for (double& frequency : model.rope_frequencies) {
      int exponent = 0;
      const double fraction = std::frexp(frequency, &exponent);
      frequency = std::ldexp(std::nearbyint(fraction * 256), exponent - 8);
    }
    model.rope_theta = std::pow(model.rope_frequencies[1], -static_cast<double>(wanted.size()));
    const CheckResult result = CheckModel(model, shape);
    EXPECT_EQ(result.outcome, ClaimOutcome::kFailed) << family;
    EXPECT_THAT(result.message, ::testing::HasSubstr("(all are rounded to bf16)")) << family;
    EXPECT_THAT(result.message, ::testing::Not(::testing::HasSubstr("the base"))) << family;
  }
}

TEST(ModelCheckTest, ABaseThatExplainsAllFrequenciesIsNamed) {
  const ModelShape shape = Qwen3();
  RopeShape other = shape.rope;
  other.theta = 1e4;
  const ObservedModel model = {Norms(1e-6), 1e4, ExactRopeFrequencies(other, shape.head_dim)};
  EXPECT_EQ(CheckModel(model, shape).message,
            "the base of the rotary embedding is 10000, and the configuration says 1e+06");
}

}  // namespace
}  // namespace bkm
