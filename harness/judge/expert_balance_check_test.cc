// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/expert_balance_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bkm {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ObservedStep StepWith(std::vector<int64_t> tokens, std::vector<double> moved) {
  ObservedStep step;
  step.experts = {{.layer = "layers.1.moe",
                   .coefficient = 1e-3,
                   .tokens = std::move(tokens),
                   .moved = std::move(moved)}};
  return step;
}

CheckResult Check(ObservedStep step) { return CheckExpertBalance(std::vector{std::move(step)}); }

// By hand: the mean is 10; one expert above, one at it, two below; the moves -1, 0, 1, 1 have the
// mean 1/4.
TEST(ExpertBalanceCheckTest, BiasesMoveAgainstTheLoadAndKeepTheirSum) {
  const auto near = [](double value) { return DoubleNear(value, 1e-12); };
  EXPECT_THAT(BalancedBy(std::vector<int64_t>{20, 10, 4, 6}, 1e-3),
              ElementsAre(near(-1.25e-3), near(-0.25e-3), near(0.75e-3), near(0.75e-3)));
}

TEST(ExpertBalanceCheckTest, WhatFollowsFromTheLoadPasses) {
  EXPECT_EQ(Check(StepWith({20, 10, 4, 6}, {-1.25e-3, -0.25e-3, 0.75e-3, 0.75e-3})).outcome,
            ClaimOutcome::kPassed);
}

TEST(ExpertBalanceCheckTest, BiasesThatStayAreTold) {
  const CheckResult result = Check(StepWith({20, 10, 4, 6}, {0, 0, 0, 0}));
  EXPECT_EQ(result.outcome, ClaimOutcome::kFailed);
  EXPECT_EQ(result.reason, "expert-bias-off");
  EXPECT_EQ(
      result.message,
      "in step 1, layers.1.moe, the experts' biases did not move: their load is not balanced");
}

TEST(ExpertBalanceCheckTest, BiasesThatMoveWithTheLoadAreTold) {
  const CheckResult result =
      Check(StepWith({20, 10, 4, 6}, {1.25e-3, 0.25e-3, -0.75e-3, -0.75e-3}));
  EXPECT_THAT(result.message,
              HasSubstr("the bias of expert 0 moved by 0.00125 instead of -0.00125"));
}

TEST(ExpertBalanceCheckTest, AMoveThatIsNoNumberIsNoPass) {
  EXPECT_EQ(Check(StepWith({20, 10, 4, 6}, {NAN, -0.25e-3, 0.75e-3, 0.75e-3})).outcome,
            ClaimOutcome::kFailed);
}

TEST(ExpertBalanceCheckTest, AStepWithoutALayerOfTheOthersWasNotSeen) {
  const ObservedStep right = StepWith({20, 10, 4, 6}, {-1.25e-3, -0.25e-3, 0.75e-3, 0.75e-3});
  const CheckResult result = CheckExpertBalance(std::vector{right, ObservedStep()});
  EXPECT_EQ(result.outcome, ClaimOutcome::kUnseen);
  EXPECT_EQ(result.message, "in step 2 0 layers of experts were seen, and 1 in step 1");
}

TEST(ExpertBalanceCheckTest, WithoutTheRoutersChoiceNothingWasSeen) {
  EXPECT_EQ(Check(StepWith({0, 0}, {0, 0})).outcome, ClaimOutcome::kUnseen);
  EXPECT_EQ(Check(StepWith({1, 2}, {0})).outcome, ClaimOutcome::kUnseen);
}

}  // namespace
}  // namespace bkm
