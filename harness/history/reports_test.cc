// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "harness/base/shape_check.h"
#include "harness/history/bisect_report.h"
#include "harness/history/peel_report.h"
#include "harness/history/timeline_report.h"

namespace bkm {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

NamedCommit ACommit(const std::string& id) { return {"lib", id, "2026-03-01", "Add", 7}; }

constexpr char kBisect[] = R"({
  "schema": 1,
  "status": "found",
  "why": "",
  "axis": "library",
  "cell": "x",
  "bad_means": "anything but ok",
  "direction": "broke",
  "older_end": {
    "source": "lib",
    "commit": "a",
    "date": "2026-03-01",
    "title": "Add",
    "pull_request": 7
  },
  "newer_end": null,
  "culprit": {
    "source": "lib",
    "commit": "b",
    "date": "2026-03-01",
    "title": "Add",
    "pull_request": null,
    "verdict": "broken",
    "stage": "import",
    "reason": "module-missing",
    "message": "No module named 'x'",
    "lock": "l"
  },
  "parents": [],
  "candidates": [
    {
      "source": "lib",
      "commit": "b",
      "date": "2026-03-01",
      "title": "Add",
      "pull_request": 7
    }
  ],
  "made_by": "either",
  "runtime": {
    "before": "k",
    "after": "l",
    "changed": [
      {
        "package": "numpy",
        "before": "",
        "after": "2.0"
      }
    ]
  },
  "flaky": {
    "confidence": 0.99,
    "no_culprit": 0.01,
    "flake_rate": 0.1,
    "miss_rate": 0.0,
    "runs": 12,
    "likely": [
      {
        "commit": "b",
        "probability": 0.9
      }
    ]
  },
  "commits": 9,
  "contents": 8,
  "probes": 7,
  "measured": 6,
  "seconds": 1.5
}
)";

BisectReport ABisectReport() {
  BisectReport report{
      .status = SearchStatus::kFound,
      .cell = "x",
      .bad_means = "anything but ok",
      .direction = Direction::kBroke,
      .older_end = MeasuredCommit{ACommit("a")},
      .culprit = MeasuredCommit{ACommit("b"), Outcome{{.kind = VerdictKind::kBroken,
                                                       .stage = Stage::kImport,
                                                       .reason = "module-missing",
                                                       .message = "No module named 'x'"},
                                                      "l"}},
      .candidates = {{ACommit("b")}},
      .made_by = MadeBy::kEither,
      .runtime = RuntimeChange{"k", "l", {{"numpy", "", "2.0"}}},
      .flaky = FlakyEstimate{.confidence = 0.99,
                             .no_culprit = 0.01,
                             .flake_rate = 0.1,
                             .miss_rate = 0,
                             .runs = 12,
                             .likely = {{"b", 0.9}}},
      .effort = {9, 8, 7, 6, 1.5}};
  report.culprit->pull_request.reset();
  return report;
}

TEST(BisectReportTest, ItsJsonHasEveryFieldInOrder) {
  EXPECT_EQ(ToText(ToJson(ABisectReport())), kBisect);
}

TEST(BisectReportTest, ReadsWhatItWrote) {
  const absl::StatusOr<BisectReport> read =
      BisectReportFromJson(*ParseJson(kBisect, "bisect.json"), "bisect.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ToText(ToJson(*read)), kBisect);
  EXPECT_EQ(ToSummary(*read), ToSummary(ABisectReport()));
}

TEST(BisectReportTest, WhatItCannotReadIsNamedWithItsPlace) {
  const auto complaint = [](const char* pointer, const Json& value) {
    Json json = *ParseJson(kBisect, "bisect.json");
    json[Json::json_pointer(pointer)] = value;
    return std::string(BisectReportFromJson(json, "bisect.json").status().message());
  };
  EXPECT_THAT(complaint("/culprit/stage", "nowhere"),
              HasSubstr("bisect.json: $.culprit.stage: unknown name 'nowhere'"));
  EXPECT_THAT(complaint("/made_by", "magic"),
              HasSubstr("bisect.json: $.made_by: unknown name 'magic'"));
  EXPECT_THAT(complaint("/flaky/runs", "many"), HasSubstr("bisect.json: $.flaky.runs: "));
  EXPECT_THAT(complaint("/surplus", 1), HasSubstr("unknown key 'surplus'"));
}

TEST(BisectReportTest, TheSummarySaysWhatTheRuntimeDidAndHowSureASearchIs) {
  EXPECT_EQ(ToSummary(ABisectReport()),
            "Broken by lib b (2026-03-01) Add\n"
            "  after:  lib b (2026-03-01): broken at import, module-missing: No module named 'x'\n"
            "  runtime k -> l: the commit alone makes the difference, and so does the runtime "
            "alone\n"
            "    numpy none -> 2.0\n"
            "  flaky: 99.0 % sure after 12 runs (flake rate before the culprit 10 %, miss rate "
            "after it 0 %)\n"
            "\n7 trials (6 measured now) over 9 commits (8 distinct contents); 2 s\n");
}

constexpr char kTimeline[] = R"({
  "schema": 1,
  "axis": "engine",
  "cell": "x",
  "stretches": [
    {
      "state": "bad",
      "signature": "broken at import, module-missing",
      "verdict": "broken",
      "stage": "import",
      "reason": "module-missing",
      "message": "No module named 'x'",
      "first": {
        "source": "lib",
        "commit": "a",
        "date": "2026-03-01",
        "title": "Add",
        "pull_request": 7,
        "merge": false
      },
      "last": {
        "source": "lib",
        "commit": "b",
        "date": "2026-03-01",
        "title": "Add",
        "pull_request": 7,
        "merge": true
      },
      "commits": 2,
      "measured": 1
    }
  ],
  "boundaries": [
    {
      "change": "differently bad",
      "before": {
        "source": "lib",
        "commit": "b",
        "date": "2026-03-01",
        "title": "Add",
        "pull_request": 7,
        "merge": true
      },
      "culprit": null,
      "candidates": [
        {
          "source": "lib",
          "commit": "c",
          "date": "2026-03-01",
          "title": "Add",
          "pull_request": 7,
          "merge": false
        }
      ],
      "same_runtime": false,
      "confirmed": null
    }
  ],
  "resolution": 3,
  "commits": 9,
  "contents": 8,
  "probes": 7,
  "measured": 6,
  "seconds": 1.5
}
)";

TEST(TimelineReportTest, ItsJsonHasEveryFieldInOrder) {
  const TimelineReport report{.axis = AxisKind::kEngine,
                              .cell = "x",
                              .stretches = {{.signature = "broken at import, module-missing",
                                             .verdict = {.kind = VerdictKind::kBroken,
                                                         .stage = Stage::kImport,
                                                         .reason = "module-missing",
                                                         .message = "No module named 'x'"},
                                             .first = {ACommit("a")},
                                             .last = {ACommit("b"), true},
                                             .commits = 2,
                                             .measured = 1}},
                              .boundaries = {{.change = Change::kDifferentlyBad,
                                              .before = {ACommit("b"), true},
                                              .candidates = {{ACommit("c")}},
                                              .same_runtime = false}},
                              .resolution = 3,
                              .effort = {9, 8, 7, 6, 1.5}};
  EXPECT_EQ(ToText(ToJson(report)), kTimeline);
}

TEST(TimelineReportTest, ReadsWhatItWrote) {
  const absl::StatusOr<TimelineReport> read =
      TimelineReportFromJson(*ParseJson(kTimeline, "timeline.json"), "timeline.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ToText(ToJson(*read)), kTimeline);
}

constexpr char kPeel[] = R"({
  "schema": 1,
  "cell": "x",
  "newest": {
    "source": "lib",
    "commit": "c",
    "date": "2026-03-01",
    "title": "Add",
    "pull_request": 7
  },
  "reached": {
    "source": "lib",
    "commit": "b",
    "date": "2026-03-01",
    "title": "Add",
    "pull_request": 7
  },
  "works": false,
  "why": "more than 1 culprits",
  "last": {
    "verdict": "ok",
    "stage": "golden",
    "reason": "",
    "message": "",
    "engine_file": null,
    "engine_line": null
  },
  "culprits": [
    {
      "commit": {
        "source": "lib",
        "commit": "a",
        "date": "2026-03-01",
        "title": "Add",
        "pull_request": 7
      },
      "candidates": [],
      "why": "",
      "confirmed": "by run",
      "failure": {
        "verdict": "broken",
        "stage": "import",
        "reason": "raised",
        "message": "gone",
        "engine_file": "engine/a.py",
        "engine_line": 3
      },
      "breaks": [
        {
          "asked": "lib.f",
          "engine_file": "engine/a.py",
          "engine_line": 3,
          "grade": "construct",
          "problem": "is not there",
          "reason": "missing-attribute",
          "where": "lib/f.py:1"
        }
      ],
      "taken_out_by": "stand-in",
      "taken_out_at": {
        "source": "lib",
        "commit": "b",
        "date": "2026-03-01",
        "title": "Add",
        "pull_request": 7
      },
      "built_on_by": {
        "source": "lib",
        "commit": "c",
        "date": "2026-03-01",
        "title": "Add",
        "pull_request": 7
      },
      "builds_on": null,
      "library_runs": true,
      "note": "revert: later changes meet it"
    }
  ],
  "measured": 4,
  "seconds": 1.5
}
)";

PeelReport APeelReport() {
  return {.cell = "x",
          .newest = ACommit("c"),
          .reached = ACommit("b"),
          .why = "more than 1 culprits",
          .last = {{.kind = VerdictKind::kOk, .stage = Stage::kGolden}},
          .culprits = {{.commit = ACommit("a"),
                        .failure = PeelFailure{{.kind = VerdictKind::kBroken,
                                                .stage = Stage::kImport,
                                                .reason = "raised",
                                                .message = "gone"},
                                               "engine/a.py",
                                               3},
                        .breaks = {{Grade::kConstruct, "missing-attribute", "engine/a.py", 3,
                                    "lib.f", "is not there", "lib/f.py:1"}},
                        .taken_out_by = Removal::kStub,
                        .taken_out_at = ACommit("b"),
                        .built_on_by = ACommit("c"),
                        .library_runs = true,
                        .note = "revert: later changes meet it"}},
          .measured = 4,
          .seconds = 1.5};
}

TEST(PeelReportTest, ItsJsonHasEveryFieldInOrder) {
  EXPECT_EQ(ToText(ToJson(APeelReport())), kPeel);
}

TEST(PeelReportTest, ReadsWhatItWrote) {
  const absl::StatusOr<PeelReport> read =
      PeelReportFromJson(*ParseJson(kPeel, "peel.json"), "peel.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ToText(ToJson(*read)), kPeel);
  EXPECT_EQ(ToSummary(*read), ToSummary(APeelReport()));
}

TEST(PeelReportTest, ReadsFilesThatDoNotSayHowFarThePairCame) {
  Json json = *ParseJson(kPeel, "peel.json");
  json.erase("reached");
  for (const char* key : {"taken_out_at", "built_on_by", "builds_on"})
    json["culprits"][0].erase(key);
  const absl::StatusOr<PeelReport> read = PeelReportFromJson(json, "peel.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->reached, NamedCommit());
  EXPECT_EQ(read->culprits[0].taken_out_at, std::nullopt);
  EXPECT_STREQ(read->culprits[0].confirmed(), "by run");
}

TEST(ReportSchemaTest, EachSchemaSaysWhatItsStructSays) {
  const auto schema = [](const char* name) {
    return *ReadJsonFile(absl::StrCat("harness/history/", name, ".schema.json"));
  };
  EXPECT_THAT(SchemaDifferences<BisectReport>(schema("bisect")), IsEmpty());
  EXPECT_THAT(SchemaDifferences<TimelineReport>(schema("timeline")), IsEmpty());
  EXPECT_THAT(SchemaDifferences<PeelReport>(schema("peel")), IsEmpty());
}

}  // namespace
}  // namespace bkm
