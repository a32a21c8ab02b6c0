// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/publish/testing_runs.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(MergeTest, TheNewestEvidenceOfACellWinsAndTheOlderIsMentioned) {
  const std::vector<RunEvidence> runs = {
      ARun("new", {ARecord("flex", Broken(), "2026-06-02T00:00:00Z")}),
      ARun("old", {ARecord("flex", Ok(), "2026-06-01T00:00:00Z")})};
  const MergedEvidence merged = Merge(runs);
  ASSERT_THAT(merged.cells, SizeIs(1));
  EXPECT_EQ(merged.cells[0].evidence.run, "new");
  EXPECT_EQ(merged.cells[0].evidence.verdict.kind, VerdictKind::kBroken);
  ASSERT_THAT(merged.cells[0].contradicted_by, SizeIs(1));
  EXPECT_EQ(merged.cells[0].contradicted_by[0].run, "old");
  EXPECT_EQ(merged.cells[0].contradicted_by[0].measured, "2026-06-01");
}

TEST(RowsTest, RowShowsTheWeakestSandboxOfItsCells) {
  const auto run = [](const std::string& dir, const std::string& attention,
                      const std::string& sandbox) {
    RunEvidence evidence = ARun(dir, {ARecord(attention, Ok(), "2026-06-01T00:00:00Z")});
    evidence.record.sandbox = sandbox;
    return evidence;
  };
  const auto sandbox_of = [](const std::vector<RunEvidence>& runs) {
    return RowsOf(Merge(runs), kMaxAgeDays).at(0).sandbox;
  };
  EXPECT_EQ(sandbox_of({run("a", "flex", "full"), run("b", "sdpa", "full")}), "full");
  EXPECT_EQ(sandbox_of({run("a", "flex", "full"), run("b", "sdpa", "weak")}), "weak");
  EXPECT_EQ(sandbox_of({run("a", "flex", "off"), run("b", "sdpa", "weak")}), "off");
  EXPECT_EQ(sandbox_of({run("a", "flex", "full"), run("b", "sdpa", "")}), "");
}

TEST(RowsTest, RowHasOneCommandThatMeasuresItAgain) {
  CellRecord other = ARecord("flex", Broken());
  other.cell.probe.micro_batches = 2;
  other.id = CellId(other.cell);
  const std::vector<PublishedRow> rows = RowsOf(
      Merge({ARun("a", {other, ARecord("sdpa", Ok()), ARecord("flex", Ok())})}), kMaxAgeDays);
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].measure_again,
            "bkm run --engine "
            "verl-torchtitan@git:verl@7aed6b230776f963fa09509c10d9c3a767d1102c --library "
            "pypi:torchtitan==0.3.0 --runtime cpu --torch 2.13.0 --model qwen3 --attention "
            "flex,sdpa --precision bf16 --seed 1");
}

TEST(RowsTest, ALibraryByItsOwnTrainerIsARowAndAControlIsNone) {
  CellRecord alone = ARecord("flex", Ok());
  alone.cell.engine = "torchtitan";
  alone.cell.engine_subject.reset();
  CellRecord driven = alone;
  driven.cell.probe.drive = "trainer";
  driven.id = CellId(driven.cell);
  std::vector<PublishedRow> rows = RowsOf(Merge({ARun("a", {alone, driven})}), kMaxAgeDays);
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].engine_version, PublishedVersion());
  EXPECT_EQ(rows[0].library_to.subject, "pypi:torchtitan==0.3.0");
  ASSERT_THAT(rows[0].cells, SizeIs(1));
  EXPECT_EQ(rows[0].cells[0].id, driven.id);
  SortAndName(rows);
  EXPECT_EQ(rows[0].id, "torchtitan-torchtitan-0-3-0-cpu-torch-2-13-0");
}

TEST(RowsTest, CellHasTheKeyOfItsQuestion) {
  RunEvidence run = ARun("a", {ARecord("flex", Ok())});
  run.root = ::testing::TempDir() + "/keyed";
  ASSERT_TRUE(
      WriteFile(run.root / run.record.cells[0].dir / "request.json", R"({"key":"abc"})").ok());
  EXPECT_EQ(RowsOf(Merge({run}), kMaxAgeDays).at(0).cells[0].key, "abc");
  run.root = "absent";
  EXPECT_EQ(RowsOf(Merge({run}), kMaxAgeDays).at(0).cells[0].key, "");
}

TEST(MergeTest, OlderEvidenceThatSaysTheSameIsNoContradiction) {
  const std::vector<RunEvidence> runs = {
      ARun("old", {ARecord("flex", Ok(), "2026-06-01T00:00:00Z")}),
      ARun("mid", {ARecord("flex", Broken(), "2026-06-02T00:00:00Z")}),
      ARun("new", {ARecord("flex", Ok(), "2026-06-03T00:00:00Z")})};
  const MergedEvidence merged = Merge(runs);
  EXPECT_EQ(merged.cells[0].evidence.run, "new");
  ASSERT_THAT(merged.cells[0].contradicted_by, SizeIs(1));
  EXPECT_EQ(merged.cells[0].contradicted_by[0].run, "mid");
}

TEST(MergeTest, WhatSaysNothingNeverWinsOverWhatDoes) {
  const std::vector<RunEvidence> runs = {
      ARun("old", {ARecord("flex", Ok(), "2026-06-01T00:00:00Z")}),
      ARun("new",
           {ARecord("flex", {.kind = VerdictKind::kSpurious, .stage = Stage::kStep, .reason = "x"},
                    "2026-06-02T00:00:00Z")})};
  const MergedEvidence merged = Merge(runs);
  EXPECT_EQ(merged.cells[0].evidence.run, "old");
  EXPECT_THAT(merged.cells[0].contradicted_by, IsEmpty());
}

// `seconds`: 0 if the cell never ran.
CellRecord AnUnsupportedRecord(double seconds, const std::string& measured) {
  CellRecord record = ARecord(
      "flex",
      {.kind = VerdictKind::kUnsupported, .stage = Stage::kGolden, .reason = "witness-missing"},
      measured);
  record.cost.seconds = seconds;
  return record;
}

TEST(MergeTest, ANewerMeasurementThatCannotTellWinsAndTheOlderIsMentioned) {
  const std::vector<RunEvidence> runs = {
      ARun("old", {ARecord("flex", Ok(), "2026-06-01T00:00:00Z")}),
      ARun("new", {AnUnsupportedRecord(9, "2026-06-02T00:00:00Z")})};
  const MergedEvidence merged = Merge(runs);
  EXPECT_EQ(merged.cells[0].evidence.run, "new");
  EXPECT_EQ(merged.cells[0].evidence.verdict.kind, VerdictKind::kUnsupported);
  ASSERT_THAT(merged.cells[0].contradicted_by, SizeIs(1));
  EXPECT_EQ(merged.cells[0].contradicted_by[0].run, "old");
}

TEST(MergeTest, AnOlderMeasurementThatCouldNotTellIsNoContradiction) {
  const std::vector<RunEvidence> runs = {
      ARun("old", {AnUnsupportedRecord(9, "2026-06-01T00:00:00Z")}),
      ARun("new", {ARecord("flex", Ok(), "2026-06-02T00:00:00Z")})};
  const MergedEvidence merged = Merge(runs);
  EXPECT_EQ(merged.cells[0].evidence.run, "new");
  EXPECT_THAT(merged.cells[0].contradicted_by, IsEmpty());
}

TEST(MergeTest, ACellThatANewerRunCouldNotStartKeepsItsOlderVerdict) {
  const std::vector<RunEvidence> runs = {
      ARun("old", {ARecord("flex", Ok(), "2026-06-01T00:00:00Z")}),
      ARun("new", {AnUnsupportedRecord(0, "2026-06-02T00:00:00Z")})};
  EXPECT_EQ(Merge(runs).cells[0].evidence.run, "old");
}

TEST(MergeTest, FoldersPlantedFaultsAndRepeatsAreNoEvidence) {
  CellRecord folder = ARecord("flex", Ok());
  folder.cell.engine_subject = *ParseSubjectSpec("path:/somewhere");
  CellRecord planted = ARecord("varlen", Broken());
  planted.cell.plant = {"mask-dropped"};
  CellRecord repeat = ARecord("sdpa", Ok());
  repeat.role = CellRole::kRepeat;
  const std::vector<RunEvidence> runs = {ARun("run", {folder, planted, repeat})};
  const MergedEvidence merged = Merge(runs);
  EXPECT_THAT(merged.cells, IsEmpty());
  EXPECT_EQ(merged.folders, 1);
  EXPECT_EQ(merged.planted, 1);
}

TEST(RowsTest, APairInOneRuntimeIsOneRowWithAllItsProbes) {
  const std::vector<RunEvidence> runs = {
      ARun("run", {ARecord("flex", Ok(), "2026-06-02T00:00:00Z"),
                   ARecord("sdpa", Broken(), "2026-06-01T00:00:00Z")})};
  const std::vector<PublishedRow> rows = RowsOf(Merge(runs), 30);
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].status, RowStatus::kWorksExcept);
  EXPECT_EQ(rows[0].measured, "2026-06-01") << "a row is as old as its oldest evidence";
  EXPECT_EQ(rows[0].expires, "2026-07-01");
  ASSERT_THAT(rows[0].cells, SizeIs(2));
  EXPECT_EQ(rows[0].cells[1].probe.attention, "sdpa");
}

RowStatus StatusOf(std::vector<CellRecord> cells) {
  const std::vector<RunEvidence> runs = {ARun("run", std::move(cells))};
  return RowsOf(Merge(runs), 30).at(0).status;
}

TEST(RowsTest, StatusIsWhatItsCellsSay) {
  const Verdict unsupported{.kind = VerdictKind::kUnsupported, .stage = Stage::kBackend};
  EXPECT_EQ(StatusOf({ARecord("flex", Ok())}), RowStatus::kWorks);
  EXPECT_EQ(StatusOf({ARecord("flex", Ok()), ARecord("sdpa", unsupported)}),
            RowStatus::kWorksExcept)
      << "nothing vouches for sdpa";
  EXPECT_EQ(StatusOf({ARecord("flex", Ok()), ARecord("sdpa", Broken())}), RowStatus::kWorksExcept);
  EXPECT_EQ(StatusOf({ARecord("sdpa", Broken())}), RowStatus::kFails);
  EXPECT_EQ(StatusOf({ARecord("sdpa", unsupported)}), RowStatus::kUnknown);
}

TEST(RowsTest, AFlakyCellIsNeverOk) {
  CellRecord flaky = ARecord("flex", Ok());
  flaky.stability = Stability{.runs = 2, .verdicts = {{"ok", 1}, {"wrong at golden", 1}}};
  EXPECT_EQ(StatusOf({flaky}), RowStatus::kFails);
}

TEST(RowsTest, AControlIsNoRowButEvidence) {
  CellRecord control = ARecord("flex", Ok());
  control.role = CellRole::kControl;
  control.cell.engine = "torchtitan";
  control.cell.engine_subject.reset();
  control.id = CellId(control.cell);
  const std::vector<RunEvidence> runs = {ARun("run", {ARecord("flex", Broken()), control})};
  const std::vector<PublishedRow> rows = RowsOf(Merge(runs), 30);
  ASSERT_THAT(rows, SizeIs(1));
  ASSERT_TRUE(rows[0].cells[0].control.has_value());
  EXPECT_EQ(rows[0].cells[0].control->verdict.kind, VerdictKind::kOk);
}

TEST(RowsTest, NamesStayAndTellRowsApart) {
  CellRecord one = ARecord("flex", Ok()), other = ARecord("varlen", Ok());
  one.lock = std::string(64, '1');
  other.lock = std::string(64, '2');
  one.measured = "2026-06-01T00:00:00Z";
  other.measured = "2026-06-05T00:00:00Z";
  const std::vector<RunEvidence> runs = {ARun("run", {one, other})};
  std::vector<PublishedRow> rows = RowsOf(Merge(runs), 30);
  SortAndName(rows);
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[0].id, "verl-torchtitan-v0-8-0-torchtitan-0-3-0-cpu-torch-2-13-0");
  EXPECT_EQ(rows[0].measured, "2026-06-05") << "the newest keeps the plain name";
  EXPECT_EQ(rows[1].id.substr(0, rows[0].id.size() + 1), rows[0].id + "-");
}

TEST(RowsTest, NamesAreFitForFilesWhateverABranchIsCalled) {
  CellRecord record = ARecord("flex", Ok());
  record.cell.engine_label = "Fix/../" + std::string(300, 'x');
  const std::vector<RunEvidence> runs = {ARun("run", {record})};
  std::vector<PublishedRow> rows = RowsOf(Merge(runs), 30);
  SortAndName(rows);
  EXPECT_EQ(rows[0].id,
            "verl-torchtitan-fix-" + std::string(33, 'x') + "-torchtitan-0-3-0-cpu-torch-2-13-0");
}

TEST(RowsTest, NewestVersionsStandFirst) {
  CellRecord old = ARecord("flex", Ok());
  old.cell.library_subject = *ParseSubjectSpec("pypi:torchtitan==0.2.2");
  old.cell.library_label = "0.2.2";
  old.library_date = "2026-02-20";
  old.id = CellId(old.cell);
  const std::vector<RunEvidence> runs = {ARun("run", {old, ARecord("flex", Ok())})};
  std::vector<PublishedRow> rows = RowsOf(Merge(runs), 30);
  SortAndName(rows);
  std::vector<std::string> labels;
  for (const PublishedRow& row : rows) labels.push_back(row.library_to.label);
  EXPECT_THAT(labels, ElementsAre("0.3.0", "0.2.2"));
}

TEST(RowsTest, DaysAreCountedOverMonths) {
  EXPECT_EQ(DaysAfter("2026-12-30", 3), "2027-01-02");
  EXPECT_EQ(DaysAfter("2026-12-30", 0), "2026-12-30");
  EXPECT_EQ(DaysAfter("yesterday", 3), "");
}

}  // namespace
}  // namespace bkm
