// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/dealing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Probe Dealt(int64_t size) {
  Probe probe;
  probe.drive = "trainer";
  probe.documents = {{37, 150, 64, 20, 9}};
  probe.global_batch_size = size;
  return probe;
}

Observation SeenWith(std::vector<std::vector<int64_t>> steps) {
  Observation seen;
  for (std::vector<int64_t>& documents : steps)
    seen.steps.emplace_back().documents = std::move(documents);
  return seen;
}

TEST(DealingTest, BeforeACellRanStepsHaveTheFilesOrder) {
  EXPECT_THAT(DealtIn(Dealt(0), 1), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(DealtIn(Dealt(2), 0), ElementsAre(0, 1));
  EXPECT_THAT(DealtIn(Dealt(2), 1), ElementsAre(2, 3));
  EXPECT_THAT(DealtIn(Dealt(2), 2), ElementsAre(0, 1));
  EXPECT_THAT(DocumentsOf(Dealt(2), 1), ElementsAre(64, 20));
}

TEST(DealingTest, LongerDocumentsAreCutOrLeftOut) {
  Probe probe = Dealt(2);
  probe.max_length = 40;
  probe.truncation = "left";
  EXPECT_THAT(KeptLengths(probe), ElementsAre(37, 40, 40, 20, 9));
  probe.truncation = "drop";
  EXPECT_THAT(KeptDocuments(probe), ElementsAre(0, 3, 4));
  EXPECT_THAT(KeptLengths(probe), ElementsAre(37, 20, 9));
}

TEST(DealingTest, ObservedStepsAreTheProbes) {
  const Probe dealt = AsDealt(Dealt(2), SeenWith({{4, 1}, {0, 3}, {2, 4}}));
  EXPECT_THAT(dealt.dealt, ElementsAre(ElementsAre(1, 4), ElementsAre(0, 3), ElementsAre(2, 4)));
  EXPECT_THAT(DocumentsOf(dealt, 0), ElementsAre(150, 9));
  EXPECT_NE(NumericsOf(dealt), NumericsOf(Dealt(2)));
  const absl::StatusOr<Probe> read = ProbeFromJson(NumericsOf(dealt), "numerics");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->dealt, dealt.dealt);
}

TEST(DealingTest, StepsThatDoNotSayChangeNothing) {
  for (const Observation& seen :
       {SeenWith({{4, 1}, {0, 3}}), SeenWith({{4, 1}, {}, {2, 4}}), SeenWith({{4, 5}, {0}, {1}}),
        SeenWith({{4, -1}, {0}, {1}}), SeenWith({{0, 1, 2, 3, 4, 4}, {0}, {1}})})
    EXPECT_THAT(AsDealt(Dealt(2), seen).dealt, IsEmpty());
  EXPECT_THAT(AsDealt(Dealt(0), SeenWith({{4, 1}, {0, 3}, {2, 4}})).dealt, IsEmpty());
}

TEST(DealingTest, AShortStepHasFewerMicroBatches) {
  Probe probe = Dealt(4);
  probe.micro_batches = 2;
  EXPECT_EQ(MicroBatchesOf(probe, 4), 2);
  EXPECT_EQ(MicroBatchesOf(probe, 3), 2);
  EXPECT_EQ(MicroBatchesOf(probe, 2), 1);
  EXPECT_EQ(MicroBatchesOf(probe, 0), 2) << "nobody knows its documents";
  probe.layout.dp_shard = 2;
  EXPECT_EQ(MicroBatchesOf(probe, 4), 2) << "of each rank's two";
  EXPECT_EQ(MicroBatchesOf(probe, 2), 1);
  probe.data = "single";
  EXPECT_EQ(MicroBatchesOf(probe, 2), 2) << "rows are filled up";
}

std::string WhyNot(const std::vector<std::vector<int64_t>>& steps, bool drops_last = false) {
  return WhyNotInEpochs(steps, /*kept=*/5, /*size=*/2, drops_last);
}

TEST(DealingTest, RanksThatPackRowsHaveEpochsOfTheirOwn) {
  EXPECT_EQ(WhyNotInEpochsOfRanks({{{0, 2}, {0, 2}}, {{1}, {3}}}, {0, 1, 2, 3}), "");
  EXPECT_EQ(WhyNotInEpochsOfRanks({{{0, 2}}, {{1, 2}}}, {0, 1, 2}),
            "document 2 was dealt to rank 0 and to rank 1");
  EXPECT_EQ(WhyNotInEpochsOfRanks({{{0, 2}, {0, 0}}, {{1}, {3}}}, {0, 1, 2, 3}),
            "on rank 0, step 2 has document 0 again before 1 others came once");
  EXPECT_EQ(WhyNotInEpochsOfRanks({{{0}, {0}}, {{1}, {1}}}, {0, 1, 2}),
            "document 2 was dealt to no rank, and each has begun a second epoch");
  EXPECT_EQ(WhyNotInEpochsOfRanks({{{0}, {2}}, {{1}, {1}}}, {0, 1, 2, 3}), "")
      << "rank 0 may have it later";
}

TEST(DealingTest, AnEpochHasEachDocumentOnce) {
  EXPECT_EQ(WhyNot({{4, 1}, {0, 3}, {2}, {2, 0}}), "") << "the last step is short";
  EXPECT_EQ(WhyNotInEpochs({{4, 1, 0}, {4, 1, 0}}, 3, 3, false), "");
  EXPECT_EQ(WhyNot({{4, 1}, {1, 3}}), "step 2 has document 1 again before 3 others came once");
  EXPECT_EQ(WhyNot({{4, 4}}), "step 1 has document 4 again before 4 others came once");
  EXPECT_EQ(WhyNot({{4, 1}, {3}}), "step 2 has 1 documents instead of 2");
  EXPECT_EQ(WhyNot({{4, 1}, {0, 2, 3}}), "step 2 has 3 documents instead of 2");
  EXPECT_EQ(WhyNot({{}}), "step 1 has 0 documents instead of 2");
}

TEST(DealingTest, OnlyATrainerThatDropsTheLastLeavesDocumentsOut) {
  EXPECT_EQ(WhyNot({{4, 1}, {0, 3}, {0, 1}}, /*drops_last=*/true), "") << "document 2 is left out";
  EXPECT_EQ(WhyNot({{4, 1}, {0, 3}, {0, 1}}), "step 3 has 2 documents instead of 1");
  EXPECT_EQ(WhyNot({{4, 1}, {0, 3}, {2}}, /*drops_last=*/true),
            "step 3 has 1 documents instead of 2");
}

TEST(DealingTest, RowsHoldAsManyDocumentsAsFit) {
  const auto rows = [](const std::vector<std::vector<int64_t>>& steps) {
    return WhyNotInEpochs(steps, /*kept=*/5, /*size=*/0, /*drops_last=*/false);
  };
  EXPECT_EQ(rows({{4, 1, 0}, {2}, {3, 2}}), "");
  EXPECT_EQ(rows({{4, 1, 0}, {2, 3, 0}}), "") << "the next epoch begins in a step";
  EXPECT_EQ(rows({{4, 1, 0}, {2, 1}}), "step 2 has document 1 again before 1 others came once");
  EXPECT_EQ(rows({{4, 1, 0}, {}}), "step 2 has 0 documents instead of 1");
}

}  // namespace
}  // namespace bkm
