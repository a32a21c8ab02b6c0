// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/judging.h"

#include <gtest/gtest.h>

#include "harness/base/files.h"

namespace bkm {
namespace {

CellRecord Measured(const RunDirectory& directory, const char* attention, const Json& ending,
                    const char* engine = "torchtitan") {
  CellRecord record;
  record.cell.engine = engine;
  record.cell.library_subject = *ParseSubjectSpec("pypi:torchtitan==0.3.0");
  record.cell.probe.attention = attention;
  record.id = CellId(record.cell);
  record.dir = CellDirectory(record.cell, record.id);
  EXPECT_TRUE(CreateDirectories(directory.cell(record)).ok());
  EXPECT_TRUE(directory
                  .WriteObservation(record, {{"schema", 1},
                                             {"ending", ending},
                                             {"stages", {{{"stage", "import"}, {"seconds", 1}}}}})
                  .ok());
  return record;
}

TEST(JudgingTest, AnInterruptedRunLeavesOpenWhatOnlyAReferenceCanTell) {
  const RunDirectory directory(*CreateTempDirectory(::testing::TempDir(), "run"));
  RunRecord run;
  run.cells.push_back(Measured(directory, "flex", {{"kind", "completed"}}));
  run.cells.push_back(Measured(directory, "varlen", {{"kind", "signalled"}, {"signal", 11}}));

  ASSERT_TRUE(RunJudge(directory).JudgeRun(run, /*interrupted=*/true).ok());
  EXPECT_FALSE(run.cells[0].verdict.has_value());
  ASSERT_TRUE(run.cells[1].verdict.has_value());
  EXPECT_EQ(run.cells[1].verdict->kind, VerdictKind::kBroken);

  ASSERT_TRUE(RunJudge(directory).JudgeRun(run).ok());
  ASSERT_TRUE(run.cells[0].verdict.has_value());
  EXPECT_EQ(run.cells[0].verdict->kind, VerdictKind::kUnsupported);
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

}  // namespace
}  // namespace bkm
