// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// User errors and missing prerequisites: each gives one sentence that says what to do and exit code
// 2, and writes nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/testing/bkm_under_test.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class BadInputTest : public ::testing::Test {
 protected:
  // The message of `bkm ARGUMENTS`. Also checks the form that every error must have.
  std::string Complaint(std::vector<std::string> arguments,
                        std::map<std::string, std::string> environment = {}) {
    const ProcessResult result = bkm_.Run(std::move(arguments), std::move(environment));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_FALSE(fs::exists(bkm_.out())) << "something was written";
    EXPECT_THAT(result.err, StartsWith("bkm: "));
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << "more than a line: " << result.err;
    return bkm_.WithoutPaths(result.err.substr(5, result.err.size() - 6));
  }

  std::vector<std::string> AdHoc(const std::string& engine, const std::string& library,
                                 const std::string& runtime = "cpu") {
    return {"run",         "--engine", engine,      "--library", library,
            "--attention", "flex",     "--runtime", runtime};
  }

  const BkmUnderTest bkm_;
};

TEST_F(BadInputTest, UnknownCommandIsToldWithTheNearest) {
  EXPECT_EQ(Complaint({"plam"}), "unknown command 'plam': did you mean 'plan'?");
}

TEST_F(BadInputTest, UnknownOptionIsToldWithTheNearest) {
  EXPECT_EQ(Complaint({"judge", bkm_.out(), "--jsn"}),
            "unknown option '--jsn': did you mean '--json'?");
  EXPECT_EQ(Complaint({"judge"}), "run is required (bkm judge --help)");
  EXPECT_EQ(Complaint({"judge", "a", "b"}), "unexpected argument 'b' (bkm judge --help)");
}

TEST_F(BadInputTest, ValueOutOfRangeIsTold) {
  EXPECT_THAT(Complaint({"plan", "x.json", "--steps", "many"}),
              ::testing::AllOf(HasSubstr("--steps"), HasSubstr("(bkm plan --help)")));
}

TEST_F(BadInputTest, OptionsOfRayWithoutRayAreTold) {
  for (const char* option : {"--address=auto", "--ray-bkm=/bkm", "--ray-lease=5"}) {
    std::vector<std::string> arguments = AdHoc("fixture", "pypi:x==1");
    arguments.push_back(option);
    EXPECT_THAT(Complaint(arguments), HasSubstr("need --executor ray")) << option;
  }
}

TEST_F(BadInputTest, MutantsOnAClusterAreRefused) {
  EXPECT_THAT(Complaint({"selftest", "--mutate", "--executor", "ray"}),
              StartsWith("--mutate changes environments of this machine"));
}

TEST_F(BadInputTest, CellsForAGpuOnAClusterAreRefused) {
  const fs::path matrix = bkm_.WriteMatrix({"passes"});
  Json json = *ReadJsonFile(matrix);
  json["groups"][0]["probe"]["device"] = {"cpu", "cuda"};
  ASSERT_TRUE(WriteFile(matrix, ToText(json)).ok());
  EXPECT_THAT(
      Complaint({"run", matrix, "--executor", "ray"}, bkm_.EnvironmentWithGpu()),
      ::testing::AllOf(StartsWith("cells on a cluster have no GPU yet, and engine=fixture@"),
                       HasSubstr("use bkm pack and bkm work")));
}

TEST_F(BadInputTest, NeitherMatrixNorFlags) {
  EXPECT_THAT(Complaint({"run"}), StartsWith("name a matrix file (bkm run "));
}

TEST_F(BadInputTest, AnOptionThatAMatrixFileWouldIgnoreIsRefused) {
  const fs::path matrix = bkm_.WriteMatrix({"passes"});
  for (const char* option : {"--attention=flex", "--steps=2", "--entropy", "--library=pypi:x==1",
                             "--engine-option=a=1"}) {
    const std::string flag = std::string(option).substr(0, std::string(option).find('='));
    EXPECT_THAT(Complaint({"plan", matrix, option}),
                StartsWith(flag + " selects cells without a matrix file: leave it out"))
        << option;
  }
}

TEST_F(BadInputTest, MatrixFileThatIsNotThere) {
  EXPECT_EQ(Complaint({"run", "none.json"}),
            "no matrix file: cannot read none.json: No such file or directory");
}

TEST_F(BadInputTest, MatrixThatCameWithBkmIsFoundByItsName) {
  ASSERT_TRUE(WriteFile(bkm_.root() / "matrices/ours.json", *ReadFile(bkm_.hostile_matrix())).ok());
  // The matrix is read before the filters.
  EXPECT_THAT(Complaint({"run", "ours", "--filter", "engin=x"}), HasSubstr("'engin'"));
  EXPECT_THAT(Complaint({"run", "./ours", "--filter", "engin=x"}), HasSubstr("no matrix file"));
  EXPECT_THAT(Complaint({"run", "hours"}), HasSubstr("no matrix file"));
}

TEST_F(BadInputTest, FilterThatIsNone) {
  EXPECT_EQ(Complaint({"run", bkm_.hostile_matrix(), "--filter", "engin=x"}),
            "filter 'engin=x': unknown key 'engin': did you mean 'engine'?");
  EXPECT_EQ(Complaint({"run", bkm_.hostile_matrix(), "--filter", "flex"}),
            "'flex' is not a filter: write key=pattern,key=pattern, for example "
            "engine=verl-torchtitan,attention=flex");
}

TEST_F(BadInputTest, FilterThatNothingMatches) {
  EXPECT_EQ(Complaint({"run", bkm_.WriteMatrix({"passes"}), "--filter", "attention=nothing"}),
            "--filter: no cell has attention 'nothing' (cells have: flex)");
}

TEST_F(BadInputTest, UnknownRuntimeNamesThoseThatExist) {
  const std::string pair = absl::StrCat("path:", bkm_.packages().string(), "/passes/");
  EXPECT_THAT(Complaint(AdHoc("fixture@" + pair + "engine", pair + "library", "gpu2")),
              ::testing::AllOf(StartsWith("no runtime 'gpu2' in "), HasSubstr("cpu")));
  const fs::path matrix = bkm_.WriteMatrix({"passes"});
  std::string text = *ReadFile(matrix);
  text.replace(text.find("\"bare\""), 6, "\"nobody\"");
  ASSERT_TRUE(WriteFile(matrix, text).ok());
  EXPECT_THAT(
      Complaint({"run", matrix}),
      ::testing::AllOf(StartsWith("no runtime 'nobody' in FOLDER/fixtures/matrices/runtimes"),
                       HasSubstr("(known: bare, cpu")));
}

TEST_F(BadInputTest, UnknownEngineKindIsToldWithTheNearest) {
  EXPECT_EQ(Complaint(AdHoc("verl-torchtita@git:verl@v0.8.0", "git:torchtitan@x")),
            "--engine: unknown kind 'verl-torchtita': did you mean 'verl-torchtitan'?");
}

TEST_F(BadInputTest, FolderThatIsNotThere) {
  EXPECT_EQ(Complaint(AdHoc("fixture@path:nowhere", "path:nowhere")),
            "path:nowhere: no such folder as FOLDER/nowhere");
  EXPECT_EQ(
      Complaint({"run", bkm_.WriteMatrix({"nobody"})}),
      "path:../packages/nobody/engine: no such folder as FOLDER/fixtures/packages/nobody/engine");
}

TEST_F(BadInputTest, RepositoryThatCannotBeReached) {
  const fs::path matrix = bkm_.folder() / "unreachable.json";
  ASSERT_TRUE(WriteFile(matrix, R"({"schema": 1, "name": "unreachable",
      "sources": {"verl": {"git": "file:///no/such/verl.git"}},
      "groups": [{"engine": {"kind": "verl-torchtitan", "subjects": ["git:verl@v0.8.0"]},
                  "library": ["path:fixtures/packages/passes/library"],
                  "probe": {"attention": ["flex"]}}]})")
                  .ok());
  fs::create_directories(bkm_.folder() / "mirrors");

  EXPECT_EQ(Complaint({"run", matrix}, {{"BKM_GIT_MIRRORS", bkm_.folder() / "mirrors"}}),
            "cannot clone verl from file:///no/such/verl.git: Could not read from remote "
            "repository. (check the network, or give a folder of mirrors with --git-mirror)");
}

TEST_F(BadInputTest, CommitThatIsNotThere) {
  const fs::path mirror = bkm_.folder() / "mirrors/verl.git";
  ASSERT_TRUE(RunForOutput({.argv = {"git", "init", "-q", "--bare", mirror}}).ok());

  EXPECT_THAT(Complaint(AdHoc("verl-torchtitan@git:verl@0123abc", "git:torchtitan@0123abc"),
                        {{"BKM_GIT_MIRRORS", bkm_.folder() / "mirrors"}}),
              ::testing::AllOf(HasSubstr("0123abc"), HasSubstr("verl")));
}

TEST_F(BadInputTest, WorkerThatWasNotBuilt) {
  const fs::path nowhere = bkm_.folder() / "bin";
  EXPECT_EQ(Complaint({"run", bkm_.WriteMatrix({"passes"})}, {{"BKM_BIN", nowhere}}),
            "FOLDER/bin/harness/cell/cell_worker is not built: run tools/bkm setup");
}

TEST_F(BadInputTest, NotStartedFromACheckout) {
  EXPECT_EQ(Complaint({"run", bkm_.WriteMatrix({"passes"})}, {{"BKM_ROOT", bkm_.folder()}}),
            "cannot find bkm's own files: start it by tools/bkm, or set BKM_ROOT to the checkout");
}

TEST_F(BadInputTest, RunDirectoryThatIsNone) {
  for (const char* command : {"judge", "explain", "replay"}) {
    std::vector<std::string> arguments = {command, "nowhere"};
    if (arguments[0] != "judge") arguments.push_back("cell");
    EXPECT_THAT(Complaint(arguments),
                HasSubstr("nowhere is not a run directory: it has no run.json"));
  }
}

TEST_F(BadInputTest, OutThatIsAFile) {
  const fs::path matrix = bkm_.WriteMatrix({"passes"});
  Command command = bkm_.MakeCommand({"plan"});
  command.argv = {command.argv[0], "run", matrix, "--out", matrix};
  const std::string before = *ReadFile(matrix);

  const ProcessResult result = *RunCommand(command);

  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("chosen.json"));
  EXPECT_EQ(*ReadFile(matrix), before);
}

class CellNameTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(bkm_.Run({"run", bkm_.WriteMatrix({"exits", "refuses"}), "--quiet"}).exit_code, 0);
  }
  std::string Complaint(const std::string& cell) {
    const ProcessResult result = bkm_.Run({"explain", bkm_.out(), cell});
    EXPECT_EQ(result.exit_code, 2);
    return result.err;
  }
  const BkmUnderTest bkm_;
};

TEST_F(CellNameTest, UnknownAndAmbiguousNamesSayWhatToGive) {
  EXPECT_EQ(
      Complaint("nobody"),
      "bkm: no cell of this run is called 'nobody': give an id from run.json, a folder's name "
      "below cells/, or a filter\n");
  EXPECT_EQ(Complaint("engin=x"),
            "bkm: filter 'engin=x': unknown key 'engin': did you mean 'engine'?\n");
  const std::string ambiguous = Complaint("engine=fixture");
  EXPECT_THAT(ambiguous, StartsWith("bkm: 'engine=fixture' means 2 cells; say more:\n"));
  EXPECT_THAT(ambiguous,
              HasSubstr("fixture exits/engine x fake_library exits/library, flex, bf16\n"));
}

}  // namespace
}  // namespace bkm
