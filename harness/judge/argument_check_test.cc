// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/argument_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "harness/judge/testing_kernel_calls.h"

namespace bkm {
namespace {

using ::testing::HasSubstr;

Probe Asked(const std::string& attention) {
  Probe probe;
  probe.attention = attention;
  return probe;
}

// Two layers and two steps, all calls read.
Observation Read() {
  Observation observation;
  observation.kernels = {{0, {}, {}, {1, 1}}, {1, {}, {}, {1, 1}}};
  observation.steps.resize(2);
  observation.gpu_reads = {2, 2};
  return observation;
}

TEST(ArgumentCheckTest, PassesIfEachCallWasReadAndNothingDiffers) {
  for (const char* attention : {"flex", "flex_attention", "varlen"})
    EXPECT_EQ(CheckArguments(Asked(attention), Read()).outcome, ClaimOutcome::kPassed);
}

TEST(ArgumentCheckTest, DifferenceNamesLayerStepAndReason) {
  Observation observation = Read();
  observation.gpu_differences = {{"flex-cpu", 3, 1, "kv_indices", "a block is missing", 1},
                                 {"flex-cpu", 4, 1, "kv_indices", "a block is missing", 1}};
  const CheckResult table = CheckArguments(Asked("flex"), observation);
  EXPECT_EQ(table.outcome, ClaimOutcome::kFailed);
  EXPECT_EQ(table.stage, Stage::kMask);
  EXPECT_EQ(table.reason, reason::kBlockTable);
  EXPECT_THAT(table.message, HasSubstr("first in layer 3, step 2: a block is missing"));
  EXPECT_EQ(table.facts["differences"].size(), 2);
  observation.gpu_differences = {{"varlen-cpu", -1, std::nullopt, "max_q", "it is 3", 2}};
  const CheckResult length = CheckArguments(Asked("varlen"), observation);
  EXPECT_EQ(length.reason, reason::kKernelArguments);
  EXPECT_THAT(length.message, HasSubstr("first in the evidence forwards: it is 3"));
}

TEST(ArgumentCheckTest, CallThatNobodyReadIsUnseen) {
  Observation observation = Read();
  observation.gpu_reads = {2, 1};
  const CheckResult result = CheckArguments(Asked("flex"), observation);
  EXPECT_EQ(result.outcome, ClaimOutcome::kUnseen);
  EXPECT_THAT(result.message, HasSubstr("in 1 of 2 attention calls of step 2"));
  observation.gpu_reads.clear();
  EXPECT_EQ(CheckArguments(Asked("varlen"), observation).outcome, ClaimOutcome::kUnseen);
}

// A call of each of gemma2's four layers in both steps.
Observation Flash(const std::vector<DocumentLengths>& documents) {
  Observation observation = Read();
  observation.gpu_reads = {4, 4};
  for (int64_t step = 0; step < 2; ++step) {
    for (int64_t layer = 0; layer < 4; ++layer)
      observation.kernel_calls.push_back(RightCall(layer, step, documents[step]));
  }
  return observation;
}

TEST(ArgumentCheckTest, CallsOfFlashAttnAreReadOnAnyDevice) {
  const std::vector<DocumentLengths> documents = {{40, 2}, {30, 12}};
  Probe probe = Asked("flash_attention_2");
  probe.model = "gemma2";
  Observation observation = Flash(documents);
  for (const char* device : {"cpu", "cuda"}) {
    probe.device = device;
    EXPECT_EQ(CheckArguments(probe, observation, documents).outcome, ClaimOutcome::kPassed);
  }
  observation.kernel_calls.pop_back();
  CheckResult result = CheckArguments(probe, observation, documents);
  EXPECT_EQ(result.outcome, ClaimOutcome::kUnseen);
  EXPECT_THAT(result.message, HasSubstr("was not read: layer 3, step 2"));
  observation.kernel_calls[5].softcap = 0;
  result = CheckArguments(probe, observation, documents);
  EXPECT_EQ(result.reason, reason::kKernelArguments);
  EXPECT_THAT(result.message,
              HasSubstr("first in layer 1, step 2: softcap is 0, and in the model 2.5"));
}

TEST(ArgumentCheckTest, EachRanksCallsAreForItsOwnDocuments) {
  const std::vector<DocumentLengths> whole = {{40, 2, 7}, {30, 12, 7}};
  Probe probe = Asked("flash_attention_2");
  probe.model = "gemma2";
  Observation observation = Flash({{40, 2}, {30, 12}});
  const auto check = [&](std::vector<ObservedShare> shares) {
    ObservedRank rank;
    rank.documents = std::move(shares);
    return CheckArguments(probe, observation, DocumentsOf(probe, observation, rank, whole)).outcome;
  };
  EXPECT_EQ(check({{0, 2}, {0, 2}}), ClaimOutcome::kPassed);
  EXPECT_EQ(check({{2, 1}, {2, 1}}), ClaimOutcome::kPassed);  // padding is longer than the document
  EXPECT_EQ(check({{0, 3}, {0, 2}}), ClaimOutcome::kFailed);
  observation = Flash({{7}, {6}});
  EXPECT_EQ(check({{2, 1}, {2, 1}}), ClaimOutcome::kFailed);
  observation = Flash({{7}, {7}});
  EXPECT_EQ(check({{2, 1}, {2, 1}}), ClaimOutcome::kPassed);
  observation.kernel_calls.clear();
  EXPECT_EQ(check({{2, 1}, {2, 1}}), ClaimOutcome::kUnseen);
}

TEST(ArgumentCheckTest, ATrainersDocumentsAreThoseThatItDealtToTheRank) {
  Probe probe = Asked("flash_attention_2");
  probe.drive = "trainer";
  probe.documents = {{40, 2, 7, 30}};
  Observation observation = Flash({{40, 2}, {7, 30}});
  observation.steps[0].of_ranks = {{.documents = {1, 0}}, {.documents = {2, 3}}};
  observation.steps[1].of_ranks = {{.documents = {3, 2}}, {.documents = {0, 9}}};
  ObservedRank rank;
  EXPECT_EQ(DocumentsOf(probe, observation, rank, {}),
            (std::vector<DocumentLengths>{{2, 40}, {30, 7}}));
  rank.rank = 1;
  EXPECT_EQ(DocumentsOf(probe, observation, rank, {}), (std::vector<DocumentLengths>{{7, 30}}))
      << "there is no document 9";
  rank.rank = 2;
  EXPECT_TRUE(DocumentsOf(probe, observation, rank, {}).empty());
}

TEST(ArgumentCheckTest, CallsForDocumentsThatNobodySawAreUnseen) {
  const std::vector<DocumentLengths> whole = {{40, 2}, {30, 12}};
  Probe probe = Asked("flash_attention_2");
  probe.model = "gemma2";
  const Observation observation = Flash(whole);
  EXPECT_EQ(CheckArguments(probe, observation).outcome, ClaimOutcome::kUnseen);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const auto& shares : std::vector<std::vector<ObservedShare>>{
           {}, {{0, 2}}, {{0, 2}, {0, 0}}, {{0, 2}, {-1, 2}}, {{0, 2}, {1, kMost}}, {{kMost, 1}}}) {
    ObservedRank rank;
    rank.documents = shares;
    const CheckResult result =
        CheckArguments(probe, observation, DocumentsOf(probe, observation, rank, whole));
    EXPECT_EQ(result.outcome, ClaimOutcome::kUnseen);
    EXPECT_THAT(result.message, HasSubstr("nobody saw whose documents step"));
  }
}

TEST(ArgumentCheckTest, FlashAttention3IsNeverRightByCallsThatNobodyReads) {
  Probe probe = Asked("flash_attention_3");
  probe.device = "cuda";
  EXPECT_EQ(CheckArguments(probe, Read(), {{40}, {40}}).outcome, ClaimOutcome::kUnseen);
}

TEST(ArgumentCheckTest, EachForwardOfAStepIsReadAndACheckpointedLayerOnce) {
  Observation observation = Read();
  for (ObservedKernels& kernels : observation.kernels) kernels.calls = {2, 2};
  EXPECT_EQ(CheckArguments(Asked("varlen"), observation).outcome, ClaimOutcome::kPassed);
  observation.steps[0].forwards = 2;
  EXPECT_EQ(CheckArguments(Asked("varlen"), observation).outcome, ClaimOutcome::kUnseen);
}

TEST(ArgumentCheckTest, KernelThatRunsItselfNeedsNoReader) {
  Observation observation = Read();
  observation.gpu_reads.clear();
  EXPECT_EQ(CheckArguments(Asked("sdpa"), observation).outcome, ClaimOutcome::kPassed);
  Probe gpu = Asked("flex");
  gpu.device = "cuda";
  EXPECT_EQ(CheckArguments(gpu, observation).outcome, ClaimOutcome::kPassed);
}

}  // namespace
}  // namespace bkm
