// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/repeats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

PreparedCell Measured(const char* attention) {
  PreparedCell cell;
  cell.record.cell.engine = "torchtitan";
  cell.record.cell.library_subject = *ParseSubjectSpec("pypi:torchtitan==0.3.0");
  cell.record.cell.probe.attention = attention;
  cell.record.id = CellId(cell.record.cell);
  cell.record.dir = CellDirectory(cell.record.cell, cell.record.id);
  return cell;
}

CellRecord With(VerdictKind kind, const char* reason = "") {
  CellRecord record = Measured("flex").record;
  record.verdict = Verdict{.kind = kind, .stage = Stage::kGolden, .reason = reason, .message = "m"};
  return record;
}

TEST(RepeatsTest, RepeatIsACellOfItsOwnThatKnowsWhatItRepeats) {
  const std::vector<PreparedCell> cells = WithRepeats({Measured("flex"), Measured("varlen")}, 2);
  ASSERT_EQ(cells.size(), 4u);
  EXPECT_EQ(cells[2].record.id, cells[0].record.id + ",repeat=2");
  EXPECT_NE(cells[2].record.dir, cells[0].record.dir);
  EXPECT_EQ(cells[3].record.repeat_of, cells[1].record.id);
  RunRecord run;
  for (const PreparedCell& cell : cells) run.cells.push_back(cell.record);
  EXPECT_THAT(RepeatsOf(run, run.cells[1]), ElementsAre(&run.cells[3]));
  EXPECT_THAT(RepeatsOf(run, run.cells[3]), ElementsAre());
}

TEST(RepeatsTest, RepeatsAreNotEqualCellsThatInherit) {
  const std::vector<PreparedCell> cells = WithRepeats({Measured("flex")}, 2);
  EXPECT_NE(MakeRequest(cells[0], "a", {})["key"], MakeRequest(cells[1], "b", {})["key"]);
}

TEST(RepeatsTest, CellThatStoppedBeforeItRanIsNotRepeated) {
  PreparedCell stopped = Measured("flex");
  stopped.stopped = CellFacts::NeverRan(EndingKind::kNoSolution, "none");
  EXPECT_EQ(WithRepeats({stopped}, 5).size(), 1u);
}

TEST(RepeatsTest, EqualVerdictsAreStable) {
  const CellRecord ok = With(VerdictKind::kOk);
  const StableVerdict together = Together(ok, {&ok, &ok});
  EXPECT_EQ(together.verdict, *ok.verdict);
  EXPECT_EQ(together.stability.runs, 3);
  EXPECT_FALSE(together.stability.flaky());
}

TEST(RepeatsTest, OkThatOnceWasWrongIsFlakyAndNeverGreen) {
  const CellRecord ok = With(VerdictKind::kOk), wrong = With(VerdictKind::kWrong, "log-probs-off");
  const StableVerdict together = Together(ok, {&wrong, &ok});
  EXPECT_EQ(together.verdict.kind, VerdictKind::kWrong);
  EXPECT_TRUE(together.stability.flaky());
  EXPECT_THAT(together.stability.verdicts,
              ElementsAre(Pair("ok", 2), Pair("wrong at golden, log-probs-off", 1)));
  EXPECT_THAT(together.verdict.message, HasSubstr("flaky in 3 runs (2 x ok; 1 x wrong at golden"));
}

TEST(RepeatsTest, AnotherReasonOfTheSameKindIsFlakyToo) {
  const CellRecord loss = With(VerdictKind::kWrong, "loss-off");
  const CellRecord mask = With(VerdictKind::kWrong, "mask-leak");
  EXPECT_TRUE(Together(loss, {&mask}).stability.flaky());
}

TEST(RepeatsTest, SpuriousRunSaysNothing) {
  const CellRecord ok = With(VerdictKind::kOk), lost = With(VerdictKind::kSpurious, "killed");
  const StableVerdict together = Together(lost, {&ok, &ok});
  EXPECT_EQ(together.verdict.kind, VerdictKind::kOk);
  EXPECT_EQ(together.stability.runs, 2);
  EXPECT_FALSE(together.stability.flaky());
}

TEST(RepeatsTest, CellThatIsOnlyEverSpuriousStaysSpurious) {
  const CellRecord lost = With(VerdictKind::kSpurious, "killed");
  EXPECT_EQ(Together(lost, {&lost}).verdict.kind, VerdictKind::kSpurious);
}

}  // namespace
}  // namespace bkm
