// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/reductions.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

std::string TextOf(const char* layout) {
  return ReductionsText(ReductionsOf(*ParseLayout(layout)));
}

TEST(ReductionsTest, AreThoseThatALayoutDividesAmongRanks) {
  EXPECT_EQ(TextOf("tp=2"), "features=2");
  EXPECT_EQ(TextOf("cp=2"), "documents=2+queries=2");
  EXPECT_EQ(TextOf("dp_shard=2+tp=4"), "documents=2+features=4");
}

TEST(ReductionsTest, AreNoneWhereRanksAddNothingUp) {
  EXPECT_EQ(TextOf("1"), "");
  EXPECT_EQ(TextOf("pp=2"), "");
}

TEST(ReductionsTest, AreTheSameHoweverRanksComeByTheirDocuments) {
  for (const char* layout : {"dp_shard=2", "dp_replicate=2", "ulysses=2", "ep=2"})
    EXPECT_EQ(TextOf(layout), "documents=2") << layout;
}

}  // namespace
}  // namespace bkm
