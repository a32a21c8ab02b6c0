// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/judging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/judge/reference_data.h"
#include "harness/numerics/probe_folder.h"
#include "harness/runner/references.h"
#include "harness/runner/task.h"

namespace bkm {
namespace {

using ::testing::HasSubstr;

CellRecord Measured(const RunDirectory& directory, const char* attention, const Json& ending,
                    const char* engine = "torchtitan") {
  CellRecord record;
  record.cell.engine = engine;
  record.cell.library_subject = *ParseSubjectSpec("pypi:torchtitan==0.3.0");
  record.cell.probe.attention = attention;
  record.id = CellId(record.cell);
  record.dir = CellDirectory(record.cell, record.id);
  EXPECT_TRUE(CreateDirectories(directory.cell(record)).ok());
  EXPECT_TRUE(
      directory
          .WriteObservation(
              record, CellFacts::OfReport({{"schema", 1},
                                           {"ending", ending},
                                           {"stages", {{{"stage", "import"}, {"seconds", 1}}}}}))
          .ok());
  return record;
}

TEST(JudgingTest, AnInterruptedRunLeavesOpenWhatOnlyAReferenceCanTell) {
  const RunDirectory directory(*CreateTempDirectory(::testing::TempDir(), "run"));
  RunRecord run;
  run.cells.push_back(Measured(directory, "flex", {{"kind", "completed"}}));
  run.cells.push_back(Measured(directory, "varlen", {{"kind", "signalled"}, {"signal", 11}}));

  ASSERT_TRUE(RunJudge(directory).JudgeRun(run, /*incomplete=*/true).ok());
  EXPECT_FALSE(run.cells[0].verdict.has_value());
  ASSERT_TRUE(run.cells[1].verdict.has_value());
  EXPECT_EQ(run.cells[1].verdict->kind, VerdictKind::kBroken);
  RunJudge judge(directory);
  EXPECT_FALSE(judge.JudgeCell(run, run.cells[0], /*incomplete=*/true)->has_value());
  EXPECT_TRUE(judge.JudgeCell(run, run.cells[1], /*incomplete=*/true)->has_value());

  ASSERT_TRUE(RunJudge(directory).JudgeRun(run).ok());
  ASSERT_TRUE(run.cells[0].verdict.has_value());
  EXPECT_EQ(run.cells[0].verdict->kind, VerdictKind::kUnsupported);
}

TEST(JudgingTest, AMissingReferenceSaysWhetherTheMachineOrItsWorkerFailed) {
  const RunDirectory directory(*CreateTempDirectory(::testing::TempDir(), "run"));
  RunRecord run;
  run.cells.push_back(Measured(directory, "flex", {{"kind", "completed"}}));
  const Probe& probe = run.cells[0].cell.probe;
  const std::filesystem::path golden = directory.reference(GoldenFile(probe));
  const auto folder = WriteProbeFolder(probe, *CreateTempDirectory(::testing::TempDir(), "probes"));
  ASSERT_TRUE(folder.ok()) << folder.status();
  ASSERT_TRUE(CopyReferenceData(*folder, directory.probe(ProbeKey(probe))).ok());
  const auto numbers = [&] {
    EXPECT_TRUE(RunJudge(directory).JudgeRun(run).ok());
    return run.cells[0].verdict->Find("numbers")->message;
  };
  EXPECT_EQ(numbers(), golden.string() + " is missing; the same bkm run computes it");

  ASSERT_TRUE(WriteFile(golden.string() + ".failure", "the golden cannot be computed").ok());
  EXPECT_EQ(numbers(), "the golden cannot be computed");

  ASSERT_TRUE(WriteFile(golden, "damaged").ok());
  EXPECT_THAT(numbers(), HasSubstr(golden.string()));
}

// Cell and control share a probe, and while its reference is incomplete, each reads it again.
TEST(JudgingTest, AControlMayShareAReferenceThatIsMissing) {
  const RunDirectory directory(*CreateTempDirectory(::testing::TempDir(), "run"));
  RunRecord run;
  run.cells.push_back(Measured(directory, "flex", {{"kind", "completed"}}));
  run.cells.push_back(
      Measured(directory, "flex", {{"kind", "completed"}}, /*engine=*/"verl-torchtitan"));
  run.cells[1].cell.engine_subject = *ParseSubjectSpec("pypi:verl==0.9.1");
  for (CellRecord& cell : run.cells) cell.lock = "lock";

  ASSERT_TRUE(RunJudge(directory).JudgeRun(run).ok());
  for (const CellRecord& cell : run.cells) {
    ASSERT_TRUE(cell.verdict.has_value());
    EXPECT_EQ(cell.verdict->kind, VerdictKind::kUnsupported);
  }
}

TEST(JudgingTest, AnOptionWhoseTwinCannotBeReadIsUnknown) {
  const RunDirectory directory(*CreateTempDirectory(::testing::TempDir(), "run"));
  const Json ending = {{"kind", "signalled"}, {"signal", 11}};
  RunRecord run;
  run.cells.push_back(Measured(directory, "flex", ending));
  run.cells.push_back(Measured(directory, "varlen", ending));
  CellRecord &subject = run.cells[0], &twin = run.cells[1];
  subject.cell.probe.engine_options = {{"param_offload", "true"}};
  const std::string dir = twin.dir;
  twin = TwinsOf({.record = subject})[0].record;
  twin.dir = dir;
  const auto effect = [&] {
    EXPECT_TRUE(RunJudge(directory).JudgeRun(run).ok());
    return subject.verdict->effects.at(0);
  };
  EXPECT_EQ(effect().kind, EffectKind::kNotObserved);
  ASSERT_TRUE(WriteFile(directory.cell(twin) / "observation.json", "damaged").ok());
  EXPECT_EQ(effect().kind, EffectKind::kUnknown);
  EXPECT_THAT(effect().seen, HasSubstr("the cell without it cannot be read: "));
}

}  // namespace
}  // namespace bkm
