// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/report/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/report/summary.h"

namespace bkm {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

CellRecord Record(const char* attention, std::optional<Verdict> verdict) {
  CellRecord record;
  record.cell = {
      .engine = "verl-torchtitan",
      .engine_subject = *ParseSubjectSpec("git:verl@7aed6b230776f963fa09509c10d9c3a767d1102c"),
      .library_subject =
          *ParseSubjectSpec("git:torchtitan@baba6d82e598568ff77a964aafc3f3b593cdf6e0"),
      .engine_label = "v0.8.0",
      .library_label = "baba6d82e",
      .runtime = "cpu",
      .torch = "2.13.0"};
  record.cell.probe.attention = attention;
  record.engine_date = "2026-06-01";
  record.library_date = "2026-06-04";
  record.verdict = std::move(verdict);
  return record;
}

RunRecord Example() {
  const Verdict refused{.kind = VerdictKind::kRefused,
                        .stage = Stage::kConstruct,
                        .reason = "refused-option",
                        .message = "only a | b",
                        .blame = {"engine"}};
  return {.matrix = "m",
          .finished = true,
          .cells = {Record("flex", Verdict{.kind = VerdictKind::kOk, .stage = Stage::kGolden}),
                    Record("sdpa", refused)}};
}

TEST(TableTest, OneRowPerPairOneColumnPerAttentionAndTheReasonsBelow) {
  EXPECT_EQ(TableMarkdown(Example()),
            "# Which versions work together: m\n\n"
            "Sandbox: not recorded.\n\n"
            "## verl-torchtitan\n\n"
            "| verl | torchtitan | runtime | torch | model | precision | flex | sdpa |\n"
            "| --- | --- | --- | --- | --- | --- | --- | --- |\n"
            "| v0.8.0 (7aed6b230, 2026-06-01) | baba6d82e (2026-06-04) | cpu | 2.13.0 | qwen3 | "
            "bf16 | **ok** | refused [1] |\n\n"
            "## Reasons\n\n"
            "1. **refused** at construct, `refused-option`: only a \\| b (blame: engine)\n");
}

TEST(TableTest, EqualVerdictsOfSeveralProbesAreCounted) {
  RunRecord run = Example();
  run.cells.insert(run.cells.begin(), 2, run.cells[0]);
  EXPECT_THAT(TableMarkdown(run), HasSubstr("| **ok** x 3 | refused [1] |"));
}

TEST(TableTest, RepeatsHaveNoRowAndAFlakyCellIsNeverPlain) {
  RunRecord run = Example();
  run.cells[1].stability = Stability{.runs = 2, .verdicts = {{"ok", 1}, {"refused", 1}}};
  run.cells.push_back(run.cells[0]);
  run.cells.back().role = CellRole::kRepeat;
  EXPECT_THAT(TableMarkdown(run), HasSubstr("| **ok** | flaky: refused [1] |"));
}

TEST(TableTest, ACellThatIsOkInOnlySomeOfItsRunsIsNotGreen) {
  RunRecord run = Example();
  run.cells[0].stability = Stability{.runs = 2, .verdicts = {{"ok", 1}, {"broken", 1}}};
  EXPECT_THAT(TableMarkdown(run), HasSubstr("| flaky: ok [1] |"));
  EXPECT_THAT(TableMarkdown(run), Not(HasSubstr("| **ok**")));
  EXPECT_THAT(SummaryText(run), HasSubstr("\nm: 1 flaky, 1 refused\n\nFlaky:\n"));
  EXPECT_THAT(SummaryText(run), Not(HasSubstr("Works:")));
}

TEST(TableTest, UnfinishedRunSaysSo) {
  RunRecord run = Example();
  run.finished = false;
  run.cells[0].verdict.reset();
  EXPECT_THAT(TableMarkdown(run), HasSubstr("not finished"));
  EXPECT_THAT(TableMarkdown(run), HasSubstr("pending"));
}

TEST(SummaryTest, GroupsByCauseTheMostFrequentFirst) {
  RunRecord run = Example();
  run.cells.push_back(run.cells[1]);
  run.cells.push_back(Record("varlen", Verdict{.kind = VerdictKind::kBroken,
                                               .stage = Stage::kForward,
                                               .reason = "crashed",
                                               .message = "boom (verl/a.py:3)"}));
  EXPECT_EQ(SummaryText(run),
            "\nm: 1 broken, 1 ok, 2 refused\n\n"
            "Works:\n  verl-torchtitan v0.8.0 x torchtitan baba6d82e, flex, bf16, torch "
            "2.13.0\n\n"
            "Does not work, by cause:\n"
            "  refused at construct (refused-option): only a | b\n"
            "    verl-torchtitan v0.8.0 x torchtitan baba6d82e, sdpa, bf16, torch 2.13.0\n"
            "    verl-torchtitan v0.8.0 x torchtitan baba6d82e, sdpa, bf16, torch 2.13.0\n"
            "  broken at forward (crashed): boom\n"
            "    verl-torchtitan v0.8.0 x torchtitan baba6d82e, varlen, bf16, torch 2.13.0\n");
}

}  // namespace
}  // namespace bkm
