// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/model_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/numerics/rope_frequencies.h"

namespace bkm {
namespace {

ModelShape Qwen3() { return *FindModelShape("qwen3"); }

TEST(ModelCheckTest, NumbersOfTheConfigurationPass) {
  EXPECT_EQ(CheckModel({{1e-6}, 1e6 * (1 + 1e-5)}, Qwen3()).outcome, CheckOutcome::kPassed);
  EXPECT_EQ(CheckModel({{static_cast<float>(1e-6)}, {}}, Qwen3()).outcome, CheckOutcome::kPassed);
  EXPECT_EQ(CheckModel({}, Qwen3()).outcome, CheckOutcome::kUnseen) << "nobody looked";
}

TEST(ModelCheckTest, OneNormWithAnotherEpsilonFails) {
  const CheckResult result = CheckModel({{1e-6, 1e-5}, 1e6}, Qwen3());
  EXPECT_EQ(result.outcome, CheckOutcome::kFailed);
  EXPECT_EQ(result.reason, "config-ignored");
  EXPECT_EQ(result.stage, Stage::kLoad);
  EXPECT_EQ(result.message, "the epsilon of a norm is 1e-05, and the configuration says 1e-06");
}

TEST(ModelCheckTest, LatentNormsMayKeepTheirOwnEpsilon) {
  EXPECT_EQ(CheckModel({{1e-6, 1e-5}, {}}, *FindModelShape("deepseek_v3")).outcome,
            CheckOutcome::kPassed);
}

TEST(ModelCheckTest, AnotherBaseOfTheRotationFails) {
  EXPECT_EQ(CheckModel({{1e-6}, 1e4}, Qwen3()).message,
            "the base of the rotary embedding is 10000, and the configuration says 1e+06");
}

TEST(ModelCheckTest, FrequenciesOfEveryModelAsTheConfigurationSaysPass) {
  for (const char* family : {"qwen3", "llama3", "deepseek_v3", "gpt_oss", "qwen3_moe"}) {
    const ModelShape shape = *FindModelShape(family);
    std::vector<double> built = ExactRopeFrequencies(shape.rope, RotatedDim(shape));
    for (double& frequency : built) frequency = static_cast<float>(frequency) * (1 + 1e-6);
    const ObservedModel model = {{shape.norm_epsilon}, shape.rope.theta, built};
    EXPECT_EQ(CheckModel(model, shape).outcome, CheckOutcome::kPassed) << family;
  }
}

TEST(ModelCheckTest, AScalingThatIsLeftOutOrWrongInOnePairFails) {
  const ModelShape shape = *FindModelShape("llama3");
  RopeShape unscaled = shape.rope;
  unscaled.scaling = "default";
  ObservedModel model = {
      {shape.norm_epsilon}, shape.rope.theta, ExactRopeFrequencies(unscaled, shape.head_dim)};
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
  EXPECT_EQ(CheckModel(model, shape).outcome, CheckOutcome::kFailed);
  model.rope_frequencies.pop_back();
  EXPECT_THAT(CheckModel(model, shape).message, ::testing::HasSubstr("the number of pairs"));
}

}  // namespace
}  // namespace bkm
