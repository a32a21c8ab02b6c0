// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/layouts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/model/dimension.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;

// `asked`: "layout=cp=2,input=padded", as an id says it.
PublishedCell ACell(const std::string& asked, VerdictKind kind, const char* attention = "flex") {
  PublishedCell cell;
  cell.id = asked + attention;
  cell.library = "git:torchtitan@x";
  cell.probe = *ProbeOfId(asked);
  cell.probe.attention = attention;
  cell.evidence.verdict.kind = kind;
  return cell;
}

PublishedRow ARow(std::vector<PublishedCell> cells) {
  PublishedRow row;
  row.engine = "torchtitan";
  row.cells = std::move(cells);
  return row;
}

TEST(LayoutsTest, TheLayoutIsOneOfTheOptions) {
  EXPECT_EQ(LayoutOf(ACell("", VerdictKind::kOk)), "1");
  EXPECT_EQ(
      LayoutOf(ACell("micro_batches=2,layout=dp_shard=2+tp=2,options=spmd_backend:\"default\"",
                     VerdictKind::kOk)),
      "dp_shard=2+tp=2");
}

TEST(LayoutsTest, ARowSaysPlainlyThatOneRankIsAll) {
  EXPECT_EQ(
      LayoutsText(ARow({ACell("", VerdictKind::kOk), ACell("input=padded", VerdictKind::kOk)})),
      "1 rank only: ok");
}

TEST(LayoutsTest, ARowSaysWhatEachLayoutDidAndWhatWasNotRun) {
  const PublishedRow row =
      ARow({ACell("layout=tp=2", VerdictKind::kWrong), ACell("", VerdictKind::kOk),
            ACell("layout=dp_shard=2", VerdictKind::kOk),
            ACell("layout=dp_shard=2", VerdictKind::kBroken, "varlen")});
  const std::string text = LayoutsText(row);
  EXPECT_EQ(text.substr(0, text.find("; not run")),
            "1 rank: ok; tp=2: wrong; dp_shard=2: 1 ok, 1 broken");
  EXPECT_THAT(
      LayoutsNotRun("torchtitan", {&row.cells[0], &row.cells[2]}),
      ::testing::Not(::testing::AnyOf(::testing::Contains("tp"), ::testing::Contains("dp_shard"))));
  EXPECT_THAT(LayoutsNotRun("torchtitan", {&row.cells[0], &row.cells[2]}),
              ::testing::Contains("dp_replicate"));
}

TEST(LayoutsTest, AnEngineWithoutLayoutsSaysNothing) {
  PublishedRow row = ARow({ACell("", VerdictKind::kOk)});
  row.engine = "fixture";
  EXPECT_EQ(LayoutsText(row), "");
  EXPECT_THAT(LayoutsNotRun("none", {}), ElementsAre());
}

TEST(LayoutsTest, OfOneLayoutOnlyItsCellsCount) {
  const PublishedTable table = {
      .rows = {ARow({ACell("", VerdictKind::kOk), ACell("", VerdictKind::kRefused, "sdpa"),
                     ACell("layout=dp_replicate=2,steps=1", VerdictKind::kWrong)}),
               ARow({ACell("", VerdictKind::kBroken)})}};
  const PublishedTable one = OfLayout(table, "1");
  ASSERT_EQ(one.rows.size(), 2);
  EXPECT_EQ(one.rows[0].cells.size(), 2);
  EXPECT_EQ(one.rows[0].status, RowStatus::kWorksExcept);
  const PublishedTable replicated = OfLayout(table, "dp_replicate=2");
  ASSERT_EQ(replicated.rows.size(), 1);
  EXPECT_EQ(replicated.rows[0].cells.size(), 1);
  EXPECT_EQ(replicated.rows[0].status, RowStatus::kFails);
  EXPECT_TRUE(OfLayout(table, "dp_replicate=2+tp=2").rows.empty());
}

}  // namespace
}  // namespace bkm
