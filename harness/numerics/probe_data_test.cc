// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/probe_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace bkm {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::Lt;

Probe ProbeOf(std::vector<int64_t> documents) {
  Probe probe;
  probe.documents = {std::move(documents)};
  return probe;
}

PackedBatch BatchOf(std::vector<int64_t> documents, int step) {
  return DrawBatch(ProbeOf(std::move(documents)), *FindModelShape("qwen3"), step);
}

TEST(DrawBatchTest, DocumentsAreRotatedByOneEachStep) {
  EXPECT_THAT(BatchOf({5, 6, 7}, 0).document_lengths, ElementsAre(5, 6, 7));
  EXPECT_THAT(BatchOf({5, 6, 7}, 1).document_lengths, ElementsAre(6, 7, 5));
  EXPECT_THAT(BatchOf({5, 6, 7}, 3).document_lengths, ElementsAre(5, 6, 7));
}

TEST(DrawBatchTest, EosEndsEachDocumentAndOccursNowhereElse) {
  PackedBatch batch = BatchOf({500, 2, 700}, 0);
  EXPECT_EQ(std::count(batch.input_ids.begin(), batch.input_ids.end(), kEosToken), 3);
  for (const int64_t end : {499, 501, 1201}) {
    EXPECT_EQ(batch.input_ids[end], kEosToken);
    batch.input_ids[end] = kFirstOrdinaryToken;
  }
  EXPECT_THAT(batch.input_ids, Each(AllOf(Ge(kFirstOrdinaryToken), Lt(2048))));
}

TEST(DrawBatchTest, TheLossLeavesOutThePromptButNeverAWholeDocument) {
  EXPECT_THAT(BatchOf({5, 2, 3}, 0).loss_mask, ElementsAre(0, 0, 0, 1, 1, 0, 1, 0, 0, 1));
}

TEST(DrawBatchTest, TheLossLeavesOutAHoleInTheMiddleOfLongerDocuments) {
  EXPECT_THAT(BatchOf({15}, 0).loss_mask, ElementsAre(0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1));
  std::set<size_t> starts;
  for (const int step : {0, 1, 2, 3, 4, 5, 6, 7}) {
    const std::vector<int64_t> mask = BatchOf({40}, step).loss_mask;
    EXPECT_EQ(std::count(mask.begin(), mask.end(), 0), 3 + 40 / 8);
    EXPECT_EQ(mask[3], 1);
    EXPECT_EQ(mask.back(), 1);
    const auto hole = std::find(mask.begin() + 3, mask.end(), 0);
    EXPECT_EQ(std::count(hole, hole + 5, 0), 5) << "in one piece";
    starts.insert(hole - mask.begin());
  }
  EXPECT_GT(starts.size(), 3);
}

TEST(DrawBatchTest, StepsAndSeedsHaveOtherTokens) {
  Probe probe = ProbeOf({50});
  const ModelShape shape = *FindModelShape("qwen3");
  std::set<std::vector<int64_t>> drawn;
  for (probe.seed = 1; probe.seed <= 2; ++probe.seed) {
    for (const int step : {0, 1}) drawn.insert(DrawBatch(probe, shape, step).input_ids);
  }
  EXPECT_EQ(drawn.size(), 4);
}

TEST(DrawReachTestTest, ReplacesAnOrdinaryTokenOfDocumentOneByAnother) {
  const ModelShape shape = *FindModelShape("qwen3");
  for (uint64_t seed = 1; seed < 50; ++seed) {
    const PackedBatch batch = BatchOf({4, 2, 9}, 0);
    const ReachTest reach = DrawReachTest(batch, shape, seed);
    EXPECT_EQ(reach.document, 1);
    EXPECT_EQ(reach.position, 4);
    EXPECT_NE(reach.token, batch.input_ids[4]);
    EXPECT_THAT(reach.token, AllOf(Ge(kFirstOrdinaryToken), Lt(2048)));
  }
  EXPECT_EQ(DrawReachTest(BatchOf({9}, 0), shape, 1).position, 4);
}

std::vector<int64_t> ReachPositions(const std::string& family, std::vector<int64_t> documents) {
  const ModelShape shape = *FindModelShape(family);
  const PackedBatch batch = BatchOf(std::move(documents), 0);
  std::vector<int64_t> positions;
  for (const TokenChange& change : DrawReaches(batch, shape, 1)) {
    positions.push_back(change.position);
    EXPECT_NE(change.token, batch.input_ids[change.position]);
    EXPECT_THAT(change.token, AllOf(Ge(kFirstOrdinaryToken), Lt(2048)));
  }
  return positions;
}

TEST(DrawReachesTest, AreTheFirstAMiddleAndTheLastOrdinaryTokenOfOneDocument) {
  EXPECT_THAT(ReachPositions("qwen3", {4, 150, 9}), ElementsAre(154, 158, 161));
  EXPECT_THAT(ReachPositions("qwen3", {4, 2}), ElementsAre(4));
  EXPECT_THAT(ReachPositions("gpt_oss", {4, 128, 9}), ElementsAre(132, 136, 139));
}

TEST(DrawReachesTest, HaveBothSidesOfTheWindowOfTheLongestDocumentsLastToken) {
  // Position 4 + 149 sees 128 tokens: from 4 + 22 on.
  EXPECT_THAT(ReachPositions("gpt_oss", {4, 150, 9}), ElementsAre(25, 26, 154, 158, 161));
}

TEST(DrawPlacesTest, AreDistinctRisingAndAllOfASmallTensor) {
  EXPECT_THAT(DrawPlaces({"small", {2, 2}, 0, 1}, 1), ElementsAre(0, 1, 2, 3));
  const std::vector<int64_t> places = DrawPlaces({"large", {100, 10}, 0, 1}, 1);
  EXPECT_EQ(places.size(), 256);
  EXPECT_EQ(std::set<int64_t>(places.begin(), places.end()).size(), 256);
  EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
  EXPECT_THAT(places, Each(AllOf(Ge(0), Lt(1000))));
  EXPECT_EQ(DrawPlaces({"expert", {100, 10}, 0, 1, 32}, 1).size(), 32);
}

TEST(DrawWeightTest, HasTheMeanAndDeviationOfItsShape) {
  const std::vector<float> values = DrawWeight({"norm", {10000}, 1.0, 0.1}, 1);
  double sum = 0, squares = 0;
  for (const float v : values) sum += v, squares += (v - 1.0) * (v - 1.0);
  EXPECT_NEAR(sum / 10000, 1.0, 0.005);
  EXPECT_NEAR(squares / 10000, 0.01, 0.0005);
}

TEST(PackedBatchTest, GroupsHaveEqualNumbersOfDocuments) {
  using Lengths = std::vector<std::vector<int64_t>>;
  const PackedBatch batch{.document_lengths = {4, 2, 9, 1}};
  EXPECT_EQ(batch.Grouped(1), Lengths({{4, 2, 9, 1}}));
  EXPECT_EQ(batch.Grouped(2), Lengths({{4, 2}, {9, 1}}));
  EXPECT_EQ(batch.Grouped(3), Lengths({{4, 2}, {9}, {1}}));
  // No group is empty.
  EXPECT_EQ(batch.Grouped(8), Lengths({{4}, {2}, {9}, {1}}));
}

TEST(PackedBatchTest, JudgedPositionsLeaveOutTheLastOfEachDocument) {
  const PackedBatch batch = {.document_lengths = {3, 2, 1}};
  EXPECT_THAT(batch.JudgedPositions(), ElementsAre(0, 1, 3));
}

TEST(PackedBatchTest, WhatFollowsADocumentMayBeALabelOfItsLastToken) {
  PackedBatch batch = {
      .input_ids = {5, 6, 7, 8, 9}, .loss_mask = {0, 0, 1, 0, 1}, .document_lengths = {3, 2}};
  EXPECT_THAT(batch.Labels(), ElementsAre(6, 7, kNoLabel, 9, kNoLabel));
  EXPECT_THAT(batch.Counted(), ElementsAre(0, 1, 0, 1, 0));
  batch.after = {2, 2};
  EXPECT_THAT(batch.Labels(), ElementsAre(6, 7, 2, 9, 2));
  EXPECT_THAT(batch.Counted(), ElementsAre(0, 1, 1, 1, 1));
  EXPECT_THAT(batch.JudgedPositions(), ElementsAre(0, 1, 2, 3, 4));
}

}  // namespace
}  // namespace bkm
