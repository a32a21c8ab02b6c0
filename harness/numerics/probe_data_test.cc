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
  probe.documents = std::move(documents);
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

TEST(DrawPlacesTest, AreDistinctRisingAndAllOfASmallTensor) {
  EXPECT_THAT(DrawPlaces({"small", {2, 2}, 0, 1}, 1), ElementsAre(0, 1, 2, 3));
  const std::vector<int64_t> places = DrawPlaces({"large", {100, 10}, 0, 1}, 1);
  EXPECT_EQ(places.size(), 256);
  EXPECT_EQ(std::set<int64_t>(places.begin(), places.end()).size(), 256);
  EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
  EXPECT_THAT(places, Each(AllOf(Ge(0), Lt(1000))));
}

TEST(DrawWeightTest, HasTheMeanAndDeviationOfItsShape) {
  const std::vector<float> values = DrawWeight({"norm", {10000}, 1.0, 0.1}, 1);
  double sum = 0, squares = 0;
  for (const float v : values) sum += v, squares += (v - 1.0) * (v - 1.0);
  EXPECT_NEAR(sum / 10000, 1.0, 0.005);
  EXPECT_NEAR(squares / 10000, 0.01, 0.0005);
}

TEST(WeightsOfTest, NamesHaveHfLayoutAndTheTiedHeadIsAbsent) {
  ModelShape shape = *FindModelShape("qwen3");
  shape.layers = 1;
  std::vector<std::string> names;
  for (const WeightShape& weight : WeightsOf(shape)) names.push_back(weight.name);
  EXPECT_THAT(
      names, ElementsAre(
                 "model.embed_tokens.weight", "model.layers.0.input_layernorm.weight",
                 "model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.k_proj.weight",
                 "model.layers.0.self_attn.v_proj.weight", "model.layers.0.self_attn.q_norm.weight",
                 "model.layers.0.self_attn.k_norm.weight", "model.layers.0.self_attn.o_proj.weight",
                 "model.layers.0.post_attention_layernorm.weight",
                 "model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.up_proj.weight",
                 "model.layers.0.mlp.down_proj.weight", "model.norm.weight"));
  EXPECT_THAT(WeightsOf(shape)[7].shape, ElementsAre(256, 2048));
  shape.tied = false;
  EXPECT_EQ(WeightsOf(shape).back().name, "lm_head.weight");
}

TEST(PackedBatchTest, JudgedPositionsLeaveOutTheLastOfEachDocument) {
  const PackedBatch batch = {.document_lengths = {3, 2, 1}};
  EXPECT_THAT(batch.JudgedPositions(), ElementsAre(0, 1, 3));
}

}  // namespace
}  // namespace bkm
