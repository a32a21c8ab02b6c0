// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/speed_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "absl/strings/str_cat.h"
#include "harness/publish/testing_runs.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SpeedDiffTest : public ::testing::Test {
 protected:
  // A cell whose step took `times` as long as one second before.
  CellRecord& Add(double times, bool is_equal) {
    CellRecord& before = records_.emplace_back(ARecord("flex", Ok()));
    before.measured = "2026-06-01T00:00:00Z";
    before.cost.step_seconds = 1;
    CellRecord& after = records_.emplace_back(before);
    after.measured = "2026-06-02T00:00:00Z";
    after.cost.step_seconds = times;
    if (!is_equal) after.lock = "another";
    pairs_.push_back({absl::StrCat("cell ", pairs_.size()), &before, &after});
    return after;
  }

  std::vector<std::string> Slower() const {
    std::vector<std::string> asked;
    for (const Slowdown& one : CompareSpeeds(pairs_).slower) asked.push_back(one.asked);
    return asked;
  }

  std::deque<CellRecord> records_;
  std::vector<CellPair> pairs_;
};

TEST_F(SpeedDiffTest, OnlyWhatEqualCellsDoNotExplainIsSlower) {
  // A machine that is twice as slow, and noise of a factor of 1.1.
  for (const double times : {2.0, 2.0, 2.2, 1.9, 2.1}) Add(times, /*is_equal=*/true);
  Add(2.4, false);
  Add(2.5, false);
  Add(3.0, false);
  Add(1.0, false);
  EXPECT_THAT(Slower(), ElementsAre("cell 7", "cell 6"));
  const SpeedDiff diff = CompareSpeeds(pairs_);
  EXPECT_EQ(diff.compared, 9);
  EXPECT_NEAR(diff.usual, 2.0, 1e-12);
  EXPECT_NEAR(diff.noise, 1.1, 1e-12);
  EXPECT_THAT(SpeedLines(diff)[0],
              HasSubstr("a step of 5 cells of the same versions takes 2.00 times as long"));
  EXPECT_THAT(SpeedLines(diff)[0], HasSubstr("2 of 4 other cells are slower"));
  EXPECT_THAT(SpeedLines(diff)[1], HasSubstr(": 1.00 s -> 3.00 s a step (3.00 times)"));
}

TEST_F(SpeedDiffTest, WithoutEnoughEqualCellsNothingIsSlower) {
  for (int i = 0; i < 4; ++i) Add(1, true);
  Add(9, false);
  EXPECT_THAT(Slower(), IsEmpty());
  EXPECT_THAT(SpeedLines(CompareSpeeds(pairs_)), ElementsAre(HasSubstr("speed: not compared: 4")));
  EXPECT_EQ(ToJson(CompareSpeeds(pairs_))["noise"], nullptr);
  Add(1, true);
  EXPECT_THAT(Slower(), ElementsAre("cell 4"));
}

TEST_F(SpeedDiffTest, StoredAndRedCellsAreNotCompared) {
  for (int i = 0; i < 5; ++i) Add(1, true);
  Add(9, false).measured = "2026-06-01T00:00:00Z";
  Add(9, false).verdict = Broken();
  Add(9, false).cost = {};
  pairs_.push_back({"gone", &records_[0], nullptr});
  EXPECT_EQ(CompareSpeeds(pairs_).compared, 5);
  EXPECT_THAT(Slower(), IsEmpty());
  EXPECT_THAT(SpeedLines({}), IsEmpty());
}

}  // namespace
}  // namespace bkm
