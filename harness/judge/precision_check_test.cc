// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/precision_check.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

Observation Ran(const std::string& witness, const std::string& training) {
  Observation observation;
  observation.precision_ran = witness;
  observation.kernels = {{0, {}, {}, {1, 1}, training}, {1, {}, {}, {1, 1}, witness}};
  observation.steps.resize(2);
  for (ObservedStep& step : observation.steps)
    step.products = {{witness.empty() ? "bf16" : witness, 10}};
  return observation;
}

TEST(PrecisionCheckTest, TheAskedPrecisionPasses) {
  EXPECT_EQ(CheckPrecision(Ran("fp32", "fp32"), "fp32").outcome, ClaimOutcome::kPassed);
}

TEST(PrecisionCheckTest, AnotherOneIsIgnored) {
  const CheckResult result = CheckPrecision(Ran("bf16", "bf16"), "fp32");
  EXPECT_EQ(result.stage, Stage::kForward);
  EXPECT_EQ(result.reason, "precision-ignored");
  EXPECT_EQ(result.message, "asked for fp32, but bf16 ran");
}

TEST(PrecisionCheckTest, OneLayerOfTheTrainingIsEnough) {
  EXPECT_EQ(CheckPrecision(Ran("bf16", "fp32"), "bf16").message,
            "asked for bf16, but fp32 ran in training (attention of layers 0)");
}

TEST(PrecisionCheckTest, AMatrixProductInALowerPrecisionIsIgnored) {
  Observation observation = Ran("fp32", "fp32");
  observation.steps[1].products["bf16"] = 3;
  const CheckResult result = CheckPrecision(observation, "fp32");
  EXPECT_EQ(result.stage, Stage::kForward);
  EXPECT_EQ(result.reason, "precision-ignored");
  EXPECT_EQ(result.message, "asked for fp32, but bf16 ran in 3 of 13 matrix products of step 2");
  EXPECT_EQ(result.facts["products"], Json({{"fp32", 10}, {"bf16", 3}}));
}

TEST(PrecisionCheckTest, AModelOfBf16MayMultiplySomethingInFp32ButNotEverything) {
  Observation observation = Ran("bf16", "bf16");
  observation.steps[0].products["fp32"] = 2;
  EXPECT_EQ(CheckPrecision(observation, "bf16").outcome, ClaimOutcome::kPassed);
  observation.steps[0].products.erase("bf16");
  EXPECT_EQ(CheckPrecision(observation, "bf16").message,
            "asked for bf16, but none of 2 matrix products ran in it of step 1");
}

TEST(PrecisionCheckTest, WhatNobodySawIsUnseen) {
  EXPECT_EQ(CheckPrecision(Ran("", ""), "bf16").reason, "witness-missing");
  Observation without = Ran("bf16", "bf16");
  without.steps[1].products.clear();
  EXPECT_EQ(CheckPrecision(without, "bf16").message,
            "nobody saw in which precision the matrix products of step 2 ran");
  Observation observation = Ran("bf16", "bf16");
  for (ObservedKernels& kernels : observation.kernels) kernels.calls.clear();
  EXPECT_EQ(CheckPrecision(observation, "bf16").outcome, ClaimOutcome::kUnseen) << "an older run";
}

}  // namespace
}  // namespace bkm
