// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/rank_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/judge/testing_kernel_calls.h"

namespace bkm {
namespace {

using ::testing::HasSubstr;

const AskedAttention kAsked = {.name = "flex", .layers = 1, .steps = 1};

ObservedKernels Flex() {
  return {.layer = 0,
          .forward = {"FlexAttentionAutogradOp", "aten::bmm", "flex_attention"},
          .backward = {"FlexAttentionAutogradOpBackward"},
          .calls = {1},
          .precision = "bf16"};
}

// Two data-parallel ranks that did what was asked.
Observation TwoRanks() {
  Observation observation;
  observation.precision_ran = "bf16";
  for (int64_t rank : {0, 1}) {
    ObservedRank one;
    one.rank = rank;
    one.ended = "done";
    one.data_rank = rank;
    one.data_ranks = 2;
    one.documents = {{.first = rank, .count = 1}};
    one.layers = {{"layers.0.attention.inner_attention", "FlexAttention", "torchtitan.x"}};
    one.ops = {"flex_attention"};
    one.precision_ran = "bf16";
    one.part = ObservedPart{.parameters = 50, .of_parameters = 100};
    one.gpu_reads = {1};
    one.kernels = {Flex()};
    observation.ranks.push_back(one);
  }
  ObservedStep step;
  step.forwards = 1;
  step.attention_nodes = {{"FlexAttentionAutogradOpBackward", 1}};
  step.of_ranks = {{1, step.attention_nodes}, {1, step.attention_nodes}};
  observation.steps = {step};
  return observation;
}

CheckResult Check(const Observation& observation) {
  Probe probe;
  probe.attention = "flex";
  probe.steps = 1;
  probe.layout = *ParseLayout("dp_shard=2");
  return CheckRanks(observation, probe, kAsked);
}

TEST(RankCheckTest, ALayoutThatIsNotInEffectFails) {
  const auto check = [](const char* layout, ObservedPart part) {
    Observation observation = TwoRanks();
    Probe probe;
    probe.attention = "flex";
    probe.steps = 1;
    probe.layout = *ParseLayout(layout);
    for (ObservedRank& rank : observation.ranks) {
      rank.part = part;
      if (probe.layout.data_ranks() == 1) rank.data_rank = 0;
      rank.data_ranks = probe.layout.data_ranks();
    }
    return CheckRanks(observation, probe, kAsked);
  };
  EXPECT_EQ(check("dp_shard=2", {50, 100}).outcome, ClaimOutcome::kPassed);
  CheckResult result = check("tp=2", {100, 100});
  EXPECT_EQ(result.reason, "override-ignored");
  EXPECT_EQ(result.message, "asked for tp=2, but rank 0 of 2 holds all 100 parameters");
  EXPECT_EQ(check("dp_replicate=2", {100, 100}).outcome, ClaimOutcome::kPassed);
  EXPECT_EQ(check("ulysses=2", {100, 100, 16, 30}).outcome, ClaimOutcome::kPassed);
  result = check("ulysses=2", {50, 100, 30, 30});
  EXPECT_EQ(result.reason, "override-ignored");
  EXPECT_EQ(result.message,
            "asked for ulysses=2, but rank 0 of 2 was given all 30 tokens of its documents");
  EXPECT_EQ(check("cp=2", {50, 100, std::nullopt, 30}).outcome, ClaimOutcome::kUnseen);
  Observation older = TwoRanks();
  older.ranks[1].part.reset();
  EXPECT_EQ(Check(older).outcome, ClaimOutcome::kUnseen);
}

TEST(RankCheckTest, RanksThatDidWhatWasAskedPass) {
  const CheckResult result = Check(TwoRanks());
  EXPECT_EQ(result.outcome, ClaimOutcome::kPassed) << result.message;
}

TEST(RankCheckTest, EachRanksCallsAreForItsOwnDocuments) {
  Observation observation = TwoRanks();
  for (ObservedRank& rank : observation.ranks) {
    rank.layers = {{"model.layers.0.self_attn", "Gemma2Attention", "transformers.x"}};
    rank.called = {"transformers.integrations.flash_attention.flash_attention_forward"};
    rank.ops = {"flash_attn::_flash_attn_varlen_forward"};
    rank.kernels = {{.layer = 0,
                     .forward = {"FlashAttnVarlenFunc", "flash_attn::_flash_attn_varlen_forward"},
                     .backward = {"FlashAttnVarlenFuncBackward"},
                     .calls = {1},
                     .precision = "bf16"}};
    rank.kernel_calls = {RightCall(0, 0, {rank.rank == 0 ? 40 : 7})};
  }
  ObservedStep& step = observation.steps[0];
  step.attention_nodes = {{"FlashAttnVarlenFuncBackward", 1}};
  step.of_ranks = {{1, step.attention_nodes}, {1, step.attention_nodes}};
  Probe probe;
  probe.attention = "flash_attention_2";
  probe.model = "gemma2";
  probe.config = {{"num_hidden_layers", "1"}};
  probe.steps = 1;
  probe.layout = *ParseLayout("dp_shard=2");
  const AskedAttention asked = {.name = "flash_attention_2", .layers = 1, .steps = 1};
  const auto check = [&] { return CheckRanks(observation, probe, asked, {{40, 7}}); };
  EXPECT_EQ(check().outcome, ClaimOutcome::kPassed) << check().message;
  observation.ranks[1].kernel_calls = {RightCall(0, 0, {6})};
  EXPECT_EQ(check().outcome, ClaimOutcome::kFailed);
  EXPECT_THAT(check().message, HasSubstr("rank 1 of 2: flash_attn is not called as"));
  observation.ranks[1].kernel_calls.clear();
  EXPECT_EQ(check().outcome, ClaimOutcome::kUnseen);
}

TEST(RankCheckTest, OneRankNeedsNothing) {
  EXPECT_EQ(CheckRanks(Observation(), Probe(), kAsked).outcome, ClaimOutcome::kPassed);
}

TEST(RankCheckTest, ARankThatSaidNothingOrDidNotFinishIsUnseen) {
  Observation observation = TwoRanks();
  observation.ranks[1].ended = "waiting";
  EXPECT_EQ(Check(observation).outcome, ClaimOutcome::kUnseen);
  observation.ranks.pop_back();
  EXPECT_EQ(Check(observation).outcome, ClaimOutcome::kUnseen);
}

TEST(RankCheckTest, DocumentsThatNobodyTrainsAreWrong) {
  Observation observation = TwoRanks();
  observation.ranks[1].data_rank = 0;
  const CheckResult result = Check(observation);
  EXPECT_EQ(result.reason, reason::kRankDocuments);
  EXPECT_THAT(result.message, HasSubstr("no rank says that it is data-parallel rank 1 of 2"));
  observation.ranks[1].data_rank = 1;
  observation.ranks[1].data_ranks = 4;
  EXPECT_THAT(Check(observation).message,
              HasSubstr("rank 1 of 2 says it is data-parallel rank 1 of 4"));
}

TEST(RankCheckTest, AnotherAttentionOnAnotherRankIsWrong) {
  Observation observation = TwoRanks();
  observation.ranks[1].layers[0].class_name = "ScaledDotProductAttentionWrapper";
  const CheckResult result = Check(observation);
  EXPECT_EQ(result.outcome, ClaimOutcome::kFailed);
  EXPECT_THAT(result.message, HasSubstr("rank 1 of 2: "));
}

TEST(RankCheckTest, ARankWithoutKernelsIsUnseen) {
  Observation observation = TwoRanks();
  observation.ranks[1].kernels.clear();
  EXPECT_EQ(Check(observation).outcome, ClaimOutcome::kUnseen);
}

TEST(RankCheckTest, AnotherPrecisionOnAnotherRankIsWrong) {
  Observation observation = TwoRanks();
  observation.ranks[1].precision_ran = "fp32";
  EXPECT_EQ(Check(observation).message, "rank 1 of 2 ran fp32, and rank 0 ran bf16");
}

TEST(RankCheckTest, AnArgumentThatAGpuReadsOtherwiseIsWrongOnAnyRank) {
  Observation observation = TwoRanks();
  observation.ranks[1].gpu_differences = {{.stand_in = "flex-cpu",
                                           .layer = 0,
                                           .step = 0,
                                           .argument = "kv_indices",
                                           .what = "a block is missing",
                                           .calls = 1}};
  const CheckResult result = Check(observation);
  EXPECT_EQ(result.outcome, ClaimOutcome::kFailed);
  EXPECT_THAT(result.message, HasSubstr("rank 1 of 2: "));
}

TEST(RankCheckTest, WhatTheFirstRankShowedDoesNotStandForAnother) {
  Observation observation = TwoRanks();
  observation.steps[0].of_ranks.pop_back();
  EXPECT_NE(Check(observation).outcome, ClaimOutcome::kPassed);
  observation = TwoRanks();
  observation.ranks[1].documents.clear();
  EXPECT_EQ(Check(observation).outcome, ClaimOutcome::kUnseen);
}

TEST(RankCheckTest, DifferentBitsAreWrongAndNamed) {
  Observation observation = TwoRanks();
  observation.rank_differences = {
      {.when = "step 2", .name = "after/model.norm.weight", .rank = 1, .largest = 0.5}};
  const CheckResult result = Check(observation);
  EXPECT_EQ(result.reason, reason::kRanksDiffer);
  EXPECT_THAT(result.message,
              HasSubstr("in step 2 rank 1 of 2 has another parameter (after the update) "
                        "model.norm.weight than a lower rank (largest difference 0.5)"));
}

}  // namespace
}  // namespace bkm
