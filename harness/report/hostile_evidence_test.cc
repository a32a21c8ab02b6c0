// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// What people read about a cell, when what the cell reported is hostile.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "harness/base/shown_text.h"
#include "harness/judge/testing_observation.h"
#include "harness/report/cost.h"
#include "harness/report/expectations.h"
#include "harness/report/story.h"
#include "harness/report/summary.h"
#include "harness/report/table.h"

namespace bkm {
namespace {

constexpr char kHostile[] =
    "\x1b[2J\x1b]0;t\x07 \u202e\u2066\u200b\u2028\u009b31m | a | b |\n| x | y |\n\n# h\n"
    "[l](https://e) ![i](https://e/i.png) <img src=x> `c` @bot #1 https://e www.e \xff";

CellRecord ACell() {
  CellRecord record{.id = "engine=torchtitan", .dir = "cells/x"};
  record.cell.engine = "torchtitan";
  record.cell.runtime = "r";
  record.cell.probe.attention = "flex";
  record.library_version = "1";
  return record;
}

Json SomeEvidence() {
  return *ParseJson(R"({
    "precision": "bf16", "last_stage": "golden",
    "exceptions": [{"what": "w", "owner": "engine", "statement": "raise", "source": "s"}],
    "checks": {
      "mask": {"outcome": "failed", "message": "m", "attended": {"layers": 2, "wrong": 1},
               "layers": [{"layer": 0, "fault": "window", "extra": 1, "missing": 2,
                           "window": "none", "asked": "8 tokens"}],
               "picture": ["\\.", "#\\"], "types": {"BlockMask": 1}},
      "numbers": {"outcome": "failed", "allowed_multiple": 4.0,
                  "loss": {"step": 0, "error": 0.5, "floor": 0.1, "multiple": 5.0},
                  "gradient": {"step": 1, "error": 0.5, "floor": 0.1, "multiple": 5.0,
                               "tensor": "a"},
                  "worst_token": {"step": 0, "position": 1, "document": 0, "document_position": 1,
                                  "error": 0.5, "golden": -7.0}}},
    "diagnosis": {"answer": "no-rope", "error": 0.1, "multiple": 0.5}})",
                    "evidence");
}

void ExpectShown(const std::string& text, const std::string& what) {
  ASSERT_EQ(ShownText(text), text) << what;
}

TEST(HostileEvidenceTest, AStoryIsToldWhateverTheObservationHolds) {
  for (const char* root : {"", "/exception", "/ending"}) {
    const auto check = [&](const Json& mutated, const std::string& what) {
      ExpectShown(StoryText(ACell(), mutated, {.kind = VerdictKind::kBroken}), what);
      CellCosts costs;
      costs.Add("lock", mutated);
      ExpectShown(CostText(costs, 1, 1), what);
    };
    ForEachMutation(*root ? RaisedObservation() : CompleteObservation(), check, root);
  }
}

TEST(HostileEvidenceTest, AStoryIsToldWhateverTheVerdictsEvidenceHolds) {
  ForEachMutation(SomeEvidence(), [&](const Json& mutated, const std::string& what) {
    Verdict verdict = {.kind = VerdictKind::kWrong, .message = kHostile};
    AdoptEvidence(mutated, verdict);
    ExpectShown(StoryText(ACell(), CompleteObservation(), verdict), what);
  });
}

RunRecord ARunWith(const std::string& message) {
  RunRecord run{.matrix = "m", .finished = true};
  run.cells = {ACell(), ACell()};
  run.cells[1].cell.probe.attention = "varlen";
  for (CellRecord& cell : run.cells) {
    cell.library_version = message.substr(0, 40);
    cell.verdict = Verdict{.kind = VerdictKind::kBroken,
                           .stage = Stage::kImport,
                           .reason = "raised",
                           .message = message,
                           .blame = {"library"}};
  }
  return run;
}

TEST(HostileEvidenceTest, ATableHasTheSameRowsWhateverAMessageSays) {
  const std::string hostile = TableMarkdown(ARunWith(kHostile));
  const std::string plain = TableMarkdown(ARunWith("plain"));

  ExpectShown(hostile, "table");
  const std::vector<std::string> lines = absl::StrSplit(hostile, '\n');
  const std::vector<std::string> expected = absl::StrSplit(plain, '\n');
  ASSERT_EQ(lines.size(), expected.size()) << hostile;
  for (const char* markup : {"[l]", "<img", "https://", "www.", "@bot", "#1", "\n# h"})
    EXPECT_EQ(hostile.find(markup), std::string::npos) << markup << "\n" << hostile;
  const auto bars = [](absl::string_view line) {
    int count = 0;
    for (size_t i = 0; i < line.size(); ++i)
      count += line[i] == '|' && (i == 0 || line[i - 1] != '\\');
    return count;
  };
  for (size_t i = 0; i < lines.size(); ++i)
    EXPECT_EQ(bars(lines[i]), bars(expected[i])) << lines[i];
}

TEST(HostileEvidenceTest, ExpectationsWrittenOfHostileMessagesAreReadBack) {
  for (const std::string& message :
       {std::string(kHostile), std::string(), std::string("\n"), std::string("#"),
        std::string("a -> ok # b"), std::string(" (x:1)"), std::string(200000, '\n')}) {
    const RunRecord run = ARunWith(message);
    const std::string text = Expectations::Parse("", "e.txt")->Rewritten(run);

    ExpectShown(text, message.substr(0, 100));
    const absl::StatusOr<Expectations> read = Expectations::Parse(text, "e.txt");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(read->Compare(run, /*whole=*/true).empty()) << text;
  }
}

TEST(HostileEvidenceTest, ASummaryShowsNothingHidden) {
  ExpectShown(SummaryText(ARunWith(kHostile)), "summary");
}

}  // namespace
}  // namespace bkm
