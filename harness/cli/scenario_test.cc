// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// fixtures/matrices/hostile.json through the real program and worker. The run must equal
// golden/scenarios/hostile/run.json.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/generated_file.h"
#include "harness/testing/bkm_under_test.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kGolden[] = "golden/scenarios/hostile/run.json";
constexpr char kAccept[] =
    "bazel test //harness/cli:scenario_test --test_env=BKM_ACCEPT=1 --nocache_test_results";

// The content of every file below `root`, by path, without Python's caches.
std::map<std::string, std::string> FilesBelow(const fs::path& root) {
  std::map<std::string, std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
    if (entry.is_regular_file() && !absl::StrContains(entry.path().string(), "__pycache__"))
      files[entry.path().lexically_relative(root)] = *ReadFile(entry.path());
  }
  return files;
}

// The inode of each observation file; it changes when the file is written again.
std::map<std::string, std::pair<ino_t, int64_t>> Observations(const fs::path& run) {
  std::map<std::string, std::pair<ino_t, int64_t>> files;
  for (const fs::directory_entry& cell : fs::directory_iterator(run / "cells")) {
    struct stat status = {};
    ::stat((cell.path() / "observation.json").c_str(), &status);
    files[cell.path().filename()] = {status.st_ino, status.st_mtim.tv_nsec};
  }
  return files;
}

// One run of the whole matrix, shared by all tests. No test changes it.
class HostileScenarioTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    bkm_ = new BkmUnderTest;
    before_ = new auto(FilesBelow(bkm_->packages()));
    result_ = new ProcessResult(bkm_->Run({"run", bkm_->hostile_matrix()}));
    left_running_ = new auto(bkm_->RunningProcesses());
  }
  static void TearDownTestSuite() {
    delete left_running_;
    delete result_;
    delete before_;
    delete bkm_;
  }
  void SetUp() override { ASSERT_EQ(result_->exit_code, 0) << result_->err; }

  static BkmUnderTest* bkm_;
  static std::map<std::string, std::string>* before_;
  static ProcessResult* result_;
  static std::vector<std::string>* left_running_;
};
BkmUnderTest* HostileScenarioTest::bkm_ = nullptr;
std::map<std::string, std::string>* HostileScenarioTest::before_ = nullptr;
ProcessResult* HostileScenarioTest::result_ = nullptr;
std::vector<std::string>* HostileScenarioTest::left_running_ = nullptr;

TEST_F(HostileScenarioTest, ComesToWhatWasAccepted) {
  const Json run = StableRun(*bkm_, bkm_->ReadRun());
  if (IsAccepting()) {
    ASSERT_EQ(run["finished"], true) << "a partial run is not accepted";
    for (const char* no_result : {"pending", "spurious", "unsupported"})
      ASSERT_FALSE(run["counts"].contains(no_result)) << no_result << " cells are not accepted";
    ASSERT_TRUE(WriteFile(fs::canonical(Runfile(kGolden)), ToText(run)).ok());
    GTEST_SKIP() << "accepted: see git diff " << kGolden;
  }
  const Json golden = *ReadJsonFile(Runfile(kGolden));
  EXPECT_EQ(Difference(golden, run), "") << "if the run is right: " << kAccept;
}

TEST_F(HostileScenarioTest, SubjectsAreWhatTheyWere) {
  EXPECT_EQ(FilesBelow(bkm_->packages()), *before_);
}

TEST_F(HostileScenarioTest, NothingIsLeftRunning) { EXPECT_THAT(*left_running_, IsEmpty()); }

TEST_F(HostileScenarioTest, SummaryAndTableNameEveryCause) {
  const std::string table = *ReadFile(bkm_->out() / "table.md");
  for (const Json& cell : bkm_->ReadRun()["cells"]) {
    const std::string message = cell["verdict"] == "ok" ? "" : cell["message"].get<std::string>();
    EXPECT_THAT(result_->out, HasSubstr(message));
    EXPECT_THAT(table, HasSubstr(message));
  }
}

TEST_F(HostileScenarioTest, ASecondRunMeasuresNothing) {
  const auto before = Observations(bkm_->out());
  const Json run = bkm_->ReadRun();

  const ProcessResult again = bkm_->Run({"run", bkm_->hostile_matrix()});

  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(Observations(bkm_->out()), before);
  EXPECT_EQ(Difference(run["cells"], bkm_->ReadRun()["cells"]), "");
}

TEST_F(HostileScenarioTest, JudgingAgainGivesTheSameRun) {
  const std::string run_json = *ReadFile(bkm_->out() / "run.json");

  const ProcessResult judged = bkm_->Run({"judge", bkm_->out(), "--json"});

  EXPECT_EQ(judged.exit_code, 0) << judged.err;
  EXPECT_TRUE(judged.out == run_json)
      << Difference(*ParseJson(run_json, ""), *ParseJson(judged.out, ""));
  EXPECT_TRUE(*ReadFile(bkm_->out() / "run.json") == run_json);
}

TEST_F(HostileScenarioTest, ARunThatWasMovedIsJudgedTheSame) {
  const fs::path moved = bkm_->folder() / "moved";
  fs::copy(bkm_->out(), moved, fs::copy_options::recursive);

  const ProcessResult judged = bkm_->Run({"judge", moved, "--json"});

  EXPECT_EQ(judged.exit_code, 0) << judged.err;
  EXPECT_EQ(Difference(bkm_->ReadRun(), *ParseJson(judged.out, "judge")), "");
}

TEST_F(HostileScenarioTest, ReplayReproducesAVerdict) {
  for (const char* behaviour : {"refuses", "segfaults", "passes"}) {
    const ProcessResult replayed =
        bkm_->Run({"replay", bkm_->out(), bkm_->CellFolder(behaviour).filename()});
    EXPECT_EQ(replayed.exit_code, 0) << replayed.err;
    EXPECT_THAT(replayed.out, HasSubstr("the same verdict as in the run"));
  }
}

TEST_F(HostileScenarioTest, RerunScriptReproducesAVerdict) {
  // tools/bkm sets BKM_LAUNCHER; rerun.sh must call the launcher that made the run.
  const fs::path launcher = bkm_->folder() / "launcher";
  ASSERT_TRUE(WriteFile(launcher, absl::StrCat("#!/bin/sh\nexec '",
                                               Runfile("harness/cli/bkm").string(), "' \"$@\"\n"))
                  .ok());
  fs::permissions(launcher, fs::perms::owner_all);
  const fs::path out = bkm_->folder() / "launched";
  Command command = bkm_->MakeCommand({"plan"}, {{"BKM_LAUNCHER", launcher}});
  command.argv = {launcher, "run", bkm_->WriteMatrix({"exits"}), "--out", out};
  ASSERT_EQ(RunCommand(command)->exit_code, 0);
  const Json cell = (*ReadJsonFile(out / "run.json"))["cells"][0];

  command.argv = {out / cell["dir"].get<std::string>() / "rerun.sh", "--json"};
  command.directory = "/";
  const ProcessResult rerun = *RunCommand(command);

  EXPECT_EQ(rerun.exit_code, 0) << rerun.err;
  const Json verdict = *ParseJson(rerun.out, "rerun");
  EXPECT_EQ(verdict["reason"], "exited");
  EXPECT_EQ(verdict["same"], true);
}

TEST_F(HostileScenarioTest, ExplainTellsWhatStoppedACell) {
  const ProcessResult story = bkm_->Run({"explain", bkm_->out(), "engine=*import_raises*"});

  EXPECT_EQ(story.exit_code, 0) << story.err;
  EXPECT_THAT(story.out, HasSubstr("broken at import (module-missing)"));
  EXPECT_THAT(
      story.out,
      HasSubstr("Stopped by ModuleNotFoundError: No module named 'fake_library.moved_away'"));
  EXPECT_THAT(story.out, HasSubstr("engine  fake_engine/__init__.py:5 in <module>\n"
                                   "      import fake_library.moved_away"));
}

TEST_F(HostileScenarioTest, PlanListsEveryCellAndWhyItIsOut) {
  const ProcessResult plan =
      bkm_->Run({"plan", bkm_->hostile_matrix(), "--json", "--filter", "engine=*passes*"});

  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  const Json json = *ParseJson(plan.out, "plan");
  const Json run = bkm_->ReadRun();
  ASSERT_EQ(json["cells"].size(), run["cells"].size());
  for (size_t i = 0; i < run["cells"].size(); ++i) {
    const bool passes = absl::StrContains(run["cells"][i]["id"].get<std::string>(), "passes");
    EXPECT_EQ(json["cells"][i], (Json{{"id", run["cells"][i]["id"]},
                                      {"included", passes},
                                      {"why", passes ? "" : "not matched by --filter"}}));
  }
}

TEST(PlanScenarioTest, SaysWhatCannotRunAndHidesWhatNobodyAskedFor) {
  const BkmUnderTest bkm;
  const fs::path matrix = bkm.WriteMatrix({"passes"});
  Json json = *ReadJsonFile(matrix);
  json["groups"][0]["probe"]["layout"] = {"1", "cp=2", "tp=2"};
  ASSERT_TRUE(WriteFile(matrix, ToText(json)).ok());

  const ProcessResult plan =
      bkm.Run({"plan", matrix, "--filter", "layout=1", "--filter", "layout=cp=2"});

  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("layout=cp=2,steps=1  # unsupported: cells of fixture"));
  EXPECT_THAT(plan.out, Not(HasSubstr("tp=2")));
  EXPECT_THAT(plan.out,
              HasSubstr("2 of 3 cells are included (not shown: 1 not matched by --filter)"));
}

TEST(FreshScenarioTest, AProcessOfItsOwnPerCellGivesTheSameVerdicts) {
  const BkmUnderTest bkm;
  const fs::path matrix =
      bkm.WriteMatrix({"passes", "import_raises", "exits", "segfaults", "refuses"});
  ASSERT_EQ(bkm.Run({"run", matrix}).exit_code, 0);
  const Json forked = StableRun(bkm, bkm.ReadRun());

  const ProcessResult fresh = bkm.Run({"run", matrix, "--fresh", "--rerun"});

  EXPECT_EQ(fresh.exit_code, 0) << fresh.err;
  EXPECT_EQ(Difference(forked, StableRun(bkm, bkm.ReadRun())), "");
}

}  // namespace
}  // namespace bkm
