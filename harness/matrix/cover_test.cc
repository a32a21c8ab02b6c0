// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/matrix/cover.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/json_facts.h"

namespace bkm {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using Combination = std::set<std::pair<size_t, std::string>>;

// Slow and plain.
std::set<Combination> CombinationsOf(const std::vector<std::string>& row, int strength) {
  std::set<Combination> all = {{}};
  for (size_t column = 0; column < row.size(); ++column) {
    for (const Combination& shorter : std::set<Combination>(all)) {
      if (static_cast<int>(shorter.size()) >= strength) continue;
      Combination longer = shorter;
      longer.emplace(column, row[column]);
      all.insert(longer);
    }
  }
  std::erase_if(all,
                [&](const Combination& one) { return static_cast<int>(one.size()) != strength; });
  return all;
}

std::set<Combination> CombinationsOf(const ValueRows& rows, const std::vector<size_t>& places,
                                     int strength) {
  std::set<Combination> all;
  for (const size_t place : places) all.merge(CombinationsOf(rows[place], strength));
  return all;
}

std::vector<size_t> AllOf(const ValueRows& rows) {
  std::vector<size_t> places(rows.size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = i;
  return places;
}

ValueRows Product(const std::vector<int>& sizes) {
  ValueRows rows = {{}};
  for (const int size : sizes) {
    ValueRows longer;
    for (const std::vector<std::string>& row : rows) {
      for (int value = 0; value < size; ++value) {
        longer.push_back(row);
        longer.back().push_back(absl::StrCat(value));
      }
    }
    rows = longer;
  }
  return rows;
}

class CoveringRowsTest : public ::testing::TestWithParam<int> {};

TEST_P(CoveringRowsTest, HoldEveryCombinationOfSparseRows) {
  // Two groups that have few values in common, thinned out: no full product anywhere.
  std::mt19937 random(7);
  ValueRows rows;
  for (std::vector<std::string> row : Product({4, 3, 3, 2, 2})) {
    if (random() % 3 == 0) continue;
    if (row[0] == "3") row[1] = "other";
    rows.push_back(row);
  }
  const std::vector<size_t> kept = CoveringRows(rows, GetParam());
  EXPECT_LT(kept.size(), rows.size());
  EXPECT_EQ(CombinationsOf(rows, kept, GetParam()), CombinationsOf(rows, AllOf(rows), GetParam()));
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
}

INSTANTIATE_TEST_SUITE_P(Strengths, CoveringRowsTest, ::testing::Values(1, 2, 3));

TEST(CoverTest, TwoValuesOfAFullProductNeedFewRows) {
  // 4 x 4 pairs need 16 rows; a greedy cover of 4^5 rows takes about twice as many.
  EXPECT_THAT(CoveringRows(Product({4, 4, 4, 4, 4}), 2),
              SizeIs(::testing::AllOf(::testing::Ge(16u), ::testing::Le(32u))));
}

TEST(CoverTest, RowsInWhichNothingOrLittleVariesKeepOne) {
  EXPECT_THAT(CoveringRows({}, 2), SizeIs(0));
  EXPECT_THAT(CoveringRows({{"a", "b"}}, 2), SizeIs(1));
  EXPECT_THAT(CoveringRows({{"a", "b"}, {"a", "c"}}, 2), SizeIs(2));
}

TEST(CoverTest, RowsInFrontArePreferred) {
  const ValueRows rows = {{"a", "x"}, {"a", "y"}, {"b", "x"}, {"b", "y"}};
  EXPECT_EQ(CoveringRows(rows, 1), (std::vector<size_t>{0, 3}));
}

PlannedCell CellWith(const std::string& attention, const std::string& precision) {
  PlannedCell planned;
  planned.cell.engine = "transformers";
  planned.cell.probe.attention = attention;
  planned.cell.probe.precision = precision;
  return planned;
}

TEST(CoverTest, LeavesOutCellsWithAReasonAndSaysWhatStaysUnknown) {
  std::vector<PlannedCell> plan;
  for (const char* attention : {"eager", "sdpa", "flex_attention"}) {
    for (const char* precision : {"bf16", "fp32"}) {
      for (const char* layout : {"", "dp_shard=2"}) {
        PlannedCell cell = CellWith(attention, precision);
        cell.cell.probe.seed = *layout ? 2 : 1;
        plan.push_back(cell);
      }
    }
  }
  plan.push_back(CellWith("sdpa", "bf16"));
  plan.back().unsupported = "this machine has no GPU";
  plan.push_back(CellWith("sdpa", "bf16"));
  plan.back().included = false;
  plan.back().why = "matches no filter";
  const Cover cover = ApplyCover(2, plan);
  EXPECT_EQ(cover.cells, 12);
  EXPECT_EQ(cover.combinations, 16);
  EXPECT_EQ(cover.larger, 12);
  EXPECT_EQ(cover.larger_kept, cover.kept);
  EXPECT_LT(cover.kept, 12);
  int included = 0;
  for (const PlannedCell& planned : plan) {
    included += planned.included && !planned.is_stopped();
    if (!planned.included && planned.why != "matches no filter") {
      EXPECT_THAT(planned.why, HasSubstr("(--cover 2)"));
    }
  }
  EXPECT_EQ(included, cover.kept);
  EXPECT_TRUE(plan[12].included);
  EXPECT_EQ(plan[13].why, "matches no filter");
  EXPECT_THAT(CoverText(cover), HasSubstr(absl::StrCat(cover.kept, " of 12 cells")));
  EXPECT_THAT(CoverText(cover), HasSubstr("Unknown: "));
}

// Of the results in golden/detection: each fault that some engine and attention catch is caught by
// a cell that a cover of pairs keeps.
TEST(CoverTest, PairsFindEveryPlantedFaultThatTheFullProductFinds) {
  const Json table = *ReadJsonFile("golden/detection/selftest.json");
  ValueRows rows;
  std::vector<std::pair<std::string, bool>> caught;
  for (const Json& one : ListOf(table, "detections")) {
    rows.emplace_back();
    for (const char* key : {"fault", "engine", "model", "attention", "precision"})
      rows.back().push_back(TextOf(one, key));
    caught.emplace_back(TextOf(one, "fault"), TextOf(one, "verdict") == "wrong");
  }
  std::set<std::string> by_all, by_pairs;
  for (const auto& [fault, found] : caught) {
    if (found) by_all.insert(fault);
  }
  const std::vector<size_t> kept = CoveringRows(rows, 2);
  for (const size_t place : kept) {
    if (caught[place].second) by_pairs.insert(caught[place].first);
  }
  EXPECT_GT(by_all.size(), 50u);
  EXPECT_EQ(by_pairs, by_all);
  EXPECT_LT(kept.size(), rows.size());
}

}  // namespace
}  // namespace bkm
