// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bkm {
namespace {

using ::testing::HasSubstr;

TEST(LayoutTest, TextNamesDegreesAboveOneInOneOrder) {
  EXPECT_EQ(LayoutText(*ParseLayout("tp=2+dp_replicate=2+cp=1")), "dp_replicate=2+tp=2");
  EXPECT_EQ(LayoutText(Layout()), "1");
  EXPECT_EQ(*ParseLayout("1"), Layout());
  EXPECT_EQ(*ParseLayout("dp_shard=1"), Layout());
}

TEST(LayoutTest, CountsRanks) {
  EXPECT_EQ(ParseLayout("1")->ranks(), 1);
  EXPECT_EQ(ParseLayout("dp_replicate=2+dp_shard=2+tp=3+cp=2+pp=2")->ranks(), 48);
  EXPECT_EQ(ParseLayout("ulysses=2")->ranks(), 2);
  EXPECT_EQ(ParseLayout("ulysses=2+dp_shard=2")->data_ranks(), 2);
}

TEST(LayoutTest, ExpertRanksAreDataParallelRanks) {
  const Layout alone = *ParseLayout("ep=2");
  EXPECT_EQ(alone.ranks(), 2);
  EXPECT_EQ(alone.data_ranks(), 2);
  EXPECT_EQ(LayoutText(alone), "ep=2");
  EXPECT_EQ(ParseLayout("ep=2+dp_shard=4")->ranks(), 4);
  EXPECT_EQ(ParseLayout("ep=2+cp=2")->data_ranks(), 1);
}

TEST(LayoutTest, MalformedLayoutsSayWhatToWrite) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "write dp_shard=2"},
      {"2", "write dp_shard=2"},
      {"dp=2", "unknown dimension 'dp'"},
      {"tp=0", "tp is a number from 1 to 1024"},
      {"tp=-2", "tp is a number"},
      {"tp=99999999999", "tp is a number"},
      {"tp=2+tp=2", "tp comes twice"},
      {"tp=1024+cp=1024+pp=1024", "at most 1024 ranks"},
      {"dp_shard=2+ep=3", "ep=3 does not divide dp_shard * cp * tp = 2"},
  };
  for (const auto& [text, wanted] : cases) {
    const absl::StatusOr<Layout> layout = ParseLayout(text);
    ASSERT_FALSE(layout.ok()) << text;
    EXPECT_THAT(std::string(layout.status().message()), HasSubstr(wanted)) << text;
  }
}

}  // namespace
}  // namespace bkm
