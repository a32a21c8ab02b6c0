// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/model_check.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace bkm
