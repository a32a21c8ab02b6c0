// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/publish/testing_table.h"

namespace bkm {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

Verdict AVerdict(VerdictKind kind, const std::string& reason) {
  return {.kind = kind, .stage = Stage::kGolden, .reason = reason, .message = reason + " here"};
}

PublishedRow ARowOf(const std::string& library, const std::string& date, Verdict flex) {
  PublishedRow row = AGoodRow();
  row.library_from = row.library_to = AVersion("pypi:torchtitan==" + library, library, date);
  row.library_versions = {row.library_to};
  row.cells = {ACell("flex", std::move(flex)),
               ACell("varlen", {.kind = VerdictKind::kOk, .stage = Stage::kGolden})};
  for (PublishedCell& cell : row.cells) cell.library = row.library_to.subject;
  return row;
}

PublishedTable ATableOf(std::vector<PublishedRow> rows) {
  return {.date = "2026-06-11", .rows = std::move(rows)};
}

const Verdict kRight = {.kind = VerdictKind::kOk, .stage = Stage::kGolden};
const Verdict kWrong = AVerdict(VerdictKind::kWrong, "mask-leak");

BisectReport ASearch(const std::string& cell, const std::string& reason) {
  BisectReport search;
  search.status = SearchStatus::kFound;
  search.cell = cell;
  search.direction = Direction::kBroke;
  search.culprit.emplace();
  search.culprit->source = "torchtitan";
  search.culprit->id = std::string(40, 'c');
  search.culprit->date = "2026-03-01";
  search.culprit->title = "Break it";
  search.newer_end = search.culprit;
  search.newer_end->outcome.emplace();
  search.newer_end->outcome->verdict.reason = reason;
  return search;
}

constexpr char kFlex[] =
    "engine=verl-torchtitan@git:verl@x,library=git:torchtitan@y,runtime=cpu,attention=flex";

TEST(FindingsTest, PairsWithTheSameFaultShareOneAndTheRightOnesAreNamed) {
  const PublishedTable table =
      ATableOf({ARowOf("0.3.2", "2026-05-30", kRight), ARowOf("0.3.1", "2026-04-30", kWrong),
                ARowOf("0.3.0", "2026-03-30", kWrong)});
  const std::vector<PublishedFinding> findings = FindingsOf(table);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_THAT(findings[0].pairs, ElementsAre("verl v0.8.0 with torchtitan 0.3.1",
                                             "verl v0.8.0 with torchtitan 0.3.0"));
  EXPECT_THAT(findings[0].right, ElementsAre("verl v0.8.0 with torchtitan 0.3.2"));
  EXPECT_EQ(findings[0].fixed, "torchtitan 0.3.2");
}

TEST(FindingsTest, AnEarlierRightVersionFixedNothing) {
  const PublishedTable table =
      ATableOf({ARowOf("0.3.1", "2026-04-30", kWrong), ARowOf("0.3.0", "2026-03-30", kRight)});
  const std::vector<PublishedFinding> findings = FindingsOf(table);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_THAT(findings[0].right, SizeIs(1));
  EXPECT_EQ(findings[0].fixed, "");
}

TEST(FindingsTest, SilentOnesComeFirst) {
  const PublishedTable table =
      ATableOf({ARowOf("0.3.2", "2026-05-30", AVerdict(VerdictKind::kBroken, "type-error")),
                ARowOf("0.3.1", "2026-04-30", kWrong)});
  const std::vector<PublishedFinding> findings = FindingsOf(table);
  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_TRUE(findings[0].fault.is_silent);
  EXPECT_FALSE(findings[1].fault.is_silent);
}

TEST(FindingsTest, ALibraryAloneIsFoundByTheControlsOfItsPairs) {
  PublishedRow row = ARowOf("0.3.1", "2026-04-30", AVerdict(VerdictKind::kBroken, "type-error"));
  row.cells[0].control = row.cells[0].evidence;
  row.cells[0].control->verdict = kWrong;
  row.cells[0].probe.engine_options["param_offload"] = "true";  // the engine's own business
  PublishedRow other = row;
  other.engine_version = AVersion("pypi:verl==0.9.1", "0.9.1", "2026-06-10");
  const PublishedTable alone = ControlTable(ATableOf({row, other}));
  ASSERT_THAT(alone.rows, SizeIs(1));
  EXPECT_EQ(alone.rows[0].engine, "torchtitan");
  ASSERT_THAT(alone.rows[0].cells, SizeIs(1));
  EXPECT_THAT(alone.rows[0].cells[0].probe.engine_options, IsEmpty());
  const std::vector<PublishedFinding> findings = FindingsOf(alone);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_THAT(findings[0].pairs, ElementsAre("torchtitan 0.3.1"));
}

TEST(FindingsTest, ASearchCountsForWhatItAsked) {
  const PublishedTable table = ATableOf({ARowOf("0.3.1", "2026-04-30", kWrong)});
  const PublishedFinding finding = FindingsOf(table).at(0);
  EXPECT_TRUE(IsOf(ASearch(kFlex, "mask-leak"), finding));
  EXPECT_FALSE(IsOf(ASearch(kFlex, "loss-off"), finding)) << "another fault";
  EXPECT_FALSE(IsOf(ASearch(std::string(kFlex) + ",entropy=true", "mask-leak"), finding));
  EXPECT_FALSE(IsOf(
      ASearch("engine=torchtitan,library=git:torchtitan@y,attention=flex", "mask-leak"), finding));
}

TEST(FindingsTest, TheTextHasTheCommandAndTheCommit) {
  const PublishedTable table = ATableOf({ARowOf("0.3.1", "2026-04-30", kWrong)});
  EXPECT_THAT(FindingsMarkdown(table, {}),
              AllOf(HasSubstr("### verl-torchtitan: mask-leak, "), HasSubstr("not bisected"),
                    HasSubstr("pypi:torchtitan==0.3.1"), HasSubstr("## Silently wrong"),
                    Not(HasSubstr("## Errors"))));
  EXPECT_THAT(FindingsMarkdown(table, {ASearch(kFlex, "mask-leak")}),
              AllOf(HasSubstr("made by torchtitan ccccccccc (2026-03-01) Break it"),
                    Not(HasSubstr("not bisected"))));
}

TEST(FindingsTest, CellsAreToldApartByWhatTheyWereAsked) {
  PublishedCell plain = ACell("flex", kRight), other = plain;
  EXPECT_THAT(DistinctionsOf({&plain, &other}), ElementsAre("", ""));
  other.probe.engine_options["spmd_backend"] = "\"default\"";
  EXPECT_THAT(DistinctionsOf({&plain, &other}),
              ElementsAre("default options", "options=spmd_backend:\"default\""));
}

TEST(FindingsTest, WhatSubjectsWroteEndsNoLine) {
  Verdict hostile = kWrong;
  hostile.message = "bad\n## Trust me\n```\n<script>";
  const std::string text = FindingsMarkdown(ATableOf({ARowOf("0.3.1", "2026-04-30", hostile)}), {});
  EXPECT_THAT(text, AllOf(Not(HasSubstr("\n## Trust me")), Not(HasSubstr("<script>"))));
}

}  // namespace
}  // namespace bkm
