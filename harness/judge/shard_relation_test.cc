// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/shard_relation.h"

#include <gtest/gtest.h>

#include <cmath>

namespace bkm {
namespace {

// A right tensor of 8 rows and 6 columns, sampled everywhere. Values have no two equal shards.
ShardedSample RightSample() {
  ShardedSample sample = {.shape = {8, 6}};
  sample.right_at = [](const std::vector<int64_t>& places) {
    std::vector<double> values;
    for (const int64_t place : places) values.push_back(std::sin(1.0 + static_cast<double>(place)));
    return values;
  };
  for (int64_t place = 0; place < 48; ++place) sample.places.push_back(place);
  sample.seen = sample.right = sample.right_at(sample.places);
  sample.before.assign(48, 7.0);
  sample.is_right.assign(48, true);
  sample.counts.assign(48, true);
  return sample;
}

void Set(ShardedSample& sample, size_t place, double value) {
  sample.seen[place] = value;
  sample.is_right[place] = false;
}

std::string Described(const std::map<std::string, ShardedSample>& samples, const char* layout) {
  return DescribeShards("the gradient of", samples, *ParseLayout(layout)).value_or("");
}

TEST(ShardRelationTest, AShardOfRowsThatIsZeroIsNamedWithItsRank) {
  ShardedSample sample = RightSample();
  for (size_t place = 24; place < 48; ++place) Set(sample, place, 0);
  EXPECT_EQ(Described({{"w", sample}}, "dp_shard=2"),
            "the gradient of w is zero in rows 4 to 7 of 8 (the shard of rank 1 of 2) and is "
            "right in the rest");
  EXPECT_EQ(Described({{"w", sample}}, "dp_replicate=2+tp=2"),
            "the gradient of w is zero in rows 4 to 7 of 8 (shard 1 of 2) and is right in the "
            "rest");
}

TEST(ShardRelationTest, AShardOfColumnsThatHoldsAnotherOrStaleValuesIsNamed) {
  ShardedSample sample = RightSample();
  for (size_t place = 0; place < 48; ++place) {
    if (place % 6 < 3) Set(sample, place, sample.right[place + 3]);
  }
  EXPECT_EQ(Described({{"w", sample}}, "tp=2"),
            "the gradient of w holds the shard of rank 1 of 2 in columns 0 to 2 of 6 (the shard of "
            "rank 0 of 2) and is right in the rest");
  for (size_t place = 0; place < 48; ++place) {
    if (place % 6 < 3) Set(sample, place, 7);
  }
  EXPECT_EQ(Described({{"w", sample}}, "tp=2"),
            "the gradient of w is stale in columns 0 to 2 of 6 (the shard of rank 0 of 2) and is "
            "right in the rest");
}

TEST(ShardRelationTest, SeveralTensorsWithOneExplanationShareASentence) {
  ShardedSample sample = RightSample();
  for (size_t place = 0; place < 24; ++place) Set(sample, place, 0);
  EXPECT_EQ(Described({{"a", sample}, {"b", sample}, {"c", RightSample()}}, "dp_shard=2"),
            "the gradient of 2 tensors is zero in the shard of rank 0 of 2 and right in the rest "
            "(first a, rows 0 to 3 of 8)");
}

TEST(ShardRelationTest, ThinEvidenceSaysNothing) {
  EXPECT_EQ(Described({{"w", RightSample()}}, "dp_shard=2"), "");
  ShardedSample all = RightSample();
  for (size_t place = 0; place < 48; ++place) Set(all, place, 0);
  EXPECT_EQ(Described({{"w", all}}, "dp_shard=2"), "") << "no shard is right";
  ShardedSample few = RightSample();
  for (size_t place = 24; place < 30; ++place) Set(few, place, 0);
  EXPECT_EQ(Described({{"w", few}}, "dp_shard=2"), "") << "most of the shard is right";
  ShardedSample blind = RightSample();
  for (size_t place = 24; place < 48; ++place) Set(blind, place, 0);
  for (size_t place = 0; place < 20; ++place) blind.counts[place] = false;
  EXPECT_EQ(Described({{"w", blind}}, "dp_shard=2"), "") << "the other shard cannot be wrong";
  ShardedSample half = RightSample();
  for (size_t place = 24; place < 48; ++place) Set(half, place, 0);
  EXPECT_EQ(Described({{"a", half}, {"b", all}}, "dp_shard=2"), "") << "half is not explained";
  EXPECT_EQ(Described({{"w", half}}, "dp_replicate=3"), "") << "no shard of this size";
}

TEST(ShardRelationTest, ASampleOfAnotherShapeSaysNothing) {
  ShardedSample sample = RightSample();
  for (size_t place = 24; place < 48; ++place) Set(sample, place, 0);
  sample.places[0] = 48;
  EXPECT_EQ(Described({{"w", sample}}, "dp_shard=2"), "");
  sample.places.pop_back();
  EXPECT_EQ(Described({{"w", sample}}, "dp_shard=2"), "");
}

// Two tensors whose shards of rows are these many times the right ones.
std::string Factors(double first, double second) {
  ShardedSample sample = RightSample();
  for (size_t place = 0; place < 48; ++place) sample.seen[place] *= place < 24 ? first : second;
  return DescribeShardFactors({{"a", sample}, {"b", sample}}, {{"a", 0.001}, {"b", 0.001}},
                              *ParseLayout("dp_shard=2"))
      .value_or("");
}

TEST(ShardRelationTest, AFactorOfEachRanksShardsIsNamed) {
  EXPECT_EQ(Factors(1.25, 5.0 / 3),
            "the factor between gradients and the golden is 1.250 in the shard of rank 0 of 2 and "
            "1.667 in the shard of rank 1 of 2, in every tensor: each rank clips by the norm of "
            "its own shards");
  EXPECT_EQ(Factors(1, 3),
            "the factor between gradients and the golden is 1.000 in the shard of rank 0 of 2 and "
            "3.000 in the shard of rank 1 of 2, in every tensor");
  EXPECT_EQ(Factors(2, 2), "") << "one factor is no matter of shards";
}

}  // namespace
}  // namespace bkm
