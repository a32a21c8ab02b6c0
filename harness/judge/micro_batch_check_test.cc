// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/micro_batch_check.h"

#include <gtest/gtest.h>

#include "harness/judge/reasons.h"

namespace bkm {
namespace {

CheckResult CheckOf(int asked, std::vector<std::optional<int64_t>> forwards) {
  Probe probe;
  probe.micro_batches = asked;
  std::vector<ObservedStep> steps;
  for (const auto& count : forwards) steps.push_back({.forwards = count});
  return CheckMicroBatches(probe, steps);
}

TEST(MicroBatchCheckTest, AsManyForwardsAsMicroBatchesPass) {
  EXPECT_EQ(CheckOf(2, {2, 2}).outcome, ClaimOutcome::kPassed);
}

TEST(MicroBatchCheckTest, AStepThatNobodyCountedIsUnseen) {
  const CheckResult result = CheckOf(2, {2, std::nullopt});
  EXPECT_EQ(result.outcome, ClaimOutcome::kUnseen);
  EXPECT_EQ(result.message, "nobody counted the forward passes of step 2");
  EXPECT_EQ(CheckOf(2, {std::nullopt, 1}).outcome, ClaimOutcome::kFailed)
      << "what is wrong comes first";
}

TEST(MicroBatchCheckTest, AnotherNumberIsAnIgnoredRequest) {
  const CheckResult result = CheckOf(2, {2, 1});
  EXPECT_EQ(result.outcome, ClaimOutcome::kFailed);
  EXPECT_EQ(result.stage, Stage::kForward);
  EXPECT_EQ(result.reason, reason::kOverrideIgnored);
  EXPECT_EQ(result.message, "asked for 2 micro-batches, but step 2 ran 1");
}

}  // namespace
}  // namespace bkm
