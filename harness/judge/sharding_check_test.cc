// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <gtest/gtest.h>

#include "harness/judge/case_file.h"
#include "harness/judge/claims.h"

namespace bkm {

extern const Claim kShardingClaim;

namespace {

CheckResult CheckOf(const char* asked, const char* sharding) {
  Observation seen;
  seen.sharding_asked = asked;
  seen.sharding = sharding;
  JudgeInput input;
  input.observation = &seen;
  const absl::StatusOr<std::vector<StepTensors>> files = absl::UnknownError("");
  return kShardingClaim.check({.input = input, .steps = files});
}

TEST(ShardingCheckTest, WhatWasAskedForPasses) {
  EXPECT_EQ(CheckOf("fsdp2", "fsdp2").outcome, ClaimOutcome::kPassed);
}

TEST(ShardingCheckTest, TheOtherOneAndNothingAreTold) {
  EXPECT_EQ(CheckOf("fsdp2", "fsdp1").message,
            "asked to shard by fsdp2, but the model is sharded by fsdp1");
  EXPECT_EQ(CheckOf("fsdp1", "nothing").outcome, ClaimOutcome::kFailed);
}

TEST(ShardingCheckTest, WhatNobodySawIsUnseen) {
  EXPECT_EQ(CheckOf("fsdp2", "").outcome, ClaimOutcome::kUnseen);
}

}  // namespace
}  // namespace bkm
