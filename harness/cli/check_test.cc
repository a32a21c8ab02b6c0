// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// bkm check through the real program, on environments made by the test. Their packages are stubs,
// so no cell is run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/cli/history_fixture.h"
#include "harness/publish/testing_table.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CheckTest : public ::testing::Test {
 protected:
  CheckTest() : environment_(bkm_.folder() / "environment") {
    EXPECT_TRUE(RunForOutput({.argv = {"/usr/bin/python3", "-m", "venv", "--without-pip",
                                       environment_.string()}})
                    .ok());
    EXPECT_TRUE(WriteFile(bkm_.folder() / "table.json", ToText(ToJson(ATable()))).ok());
  }

  void Install(const std::string& package, const std::string& version,
               const std::map<std::string, std::string>& files, const std::string& commit = "") {
    const fs::path site = environment_ / "lib/python3.11/site-packages";
    const fs::path info = site / absl::StrCat(package, "-", version, ".dist-info");
    EXPECT_TRUE(WriteFile(info / "METADATA", absl::StrCat("Metadata-Version: 2.1\nName: ", package,
                                                          "\nVersion: ", version, "\n"))
                    .ok());
    if (!commit.empty()) {
      const Json source = {{"url", "https://example.org/x"},
                           {"vcs_info", {{"vcs", "git"}, {"commit_id", commit}}}};
      EXPECT_TRUE(WriteFile(info / "direct_url.json", ToText(source)).ok());
    }
    for (const auto& [path, text] : files) EXPECT_TRUE(WriteFile(site / package / path, text).ok());
  }
  // An engine that imports a module which its library lacks.
  void InstallABrokenPair(const std::string& commit = "") {
    Install("torch", "2.13.0+cpu", {{"__init__.py", ""}});
    Install("torchtitan", "0.3.0", {{"__init__.py", ""}});
    const std::string asks = "from torchtitan.gone import Thing\n";
    Install("verl", "0.9.1",
            {{"__init__.py", ""},
             {"trainer/__init__.py", ""},
             {"trainer/config/__init__.py", ""},
             {"utils/__init__.py", ""},
             {"utils/tensordict_utils.py", ""},
             {"utils/dataset/__init__.py", ""},
             {"utils/dataset/dataset_utils.py", ""},
             {"workers/__init__.py", ""},
             {"workers/config/__init__.py", ""},
             {"workers/utils/__init__.py", ""},
             {"workers/utils/losses.py", ""},
             {"workers/engine/__init__.py", ""},
             {"workers/engine/torchtitan/__init__.py", ""},
             {"workers/engine/torchtitan/transformer_impl.py", asks}},
            commit);
  }
  ProcessResult Check(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {"check", "--python",
                                          (environment_ / "bin/python").string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return bkm_.Run(arguments);
  }
  std::string table() const { return (bkm_.folder() / "table.json").string(); }

  // The time of the last change of every file in the environment, by path.
  std::map<std::string, fs::file_time_type> Files() const {
    std::map<std::string, fs::file_time_type> files;
    for (const auto& entry : fs::recursive_directory_iterator(environment_))
      files[entry.path()] = fs::last_write_time(entry.path());
    return files;
  }

  const BkmUnderTest bkm_;
  const fs::path environment_;
};

TEST_F(CheckTest, SaysWhatIsBrokenByTheSourcesAndWhatWorksNearby) {
  InstallABrokenPair();
  const auto before = Files();

  const ProcessResult result = Check({"--sources-only", "--table", table()});

  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("verl-torchtitan: verl 0.9.1 x torchtitan 0.3.0\nBROKEN because "
                              "verl/workers/engine/torchtitan/transformer_impl.py:1 asks "
                              "torchtitan.gone: there is no module torchtitan.gone"),
                    HasSubstr("Published: fails (measured 2026-06-01, expired: measure "
                              "again, row verl-torchtitan-0-9-1"),
                    HasSubstr("Nearest versions that work:\n  verl-torchtitan v0.8.0"),
                    HasSubstr("    uv venv --python 3.11\n"),
                    HasSubstr(absl::StrCat("    uv pip sync ",
                                           fs::path(table()).parent_path().string(), "/pylock."))));
  EXPECT_EQ(Files(), before) << "nothing is written into the environment";
}

TEST_F(CheckTest, AGpuThatIsMissingOrThatTorchCannotUseIsOneSentence) {
  InstallABrokenPair();
  const auto check = [&](const std::map<std::string, std::string>& machine) {
    return bkm_.Run({"check", "--python", (environment_ / "bin/python").string(), "--device",
                     "cuda", "--sources-only"},
                    machine);
  };
  const ProcessResult none = check({{"CUDA_VISIBLE_DEVICES", ""}});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_EQ(none.err, "bkm: --device cuda: nvidia-smi lists no CUDA device of this machine\n");
  const ProcessResult cpu_torch = check(bkm_.EnvironmentWithGpu());
  EXPECT_EQ(cpu_torch.exit_code, 2);
  EXPECT_EQ(cpu_torch.err,
            "bkm: --device cuda: torch 2.13.0+cpu of this environment is built for CPUs\n");
}

TEST_F(CheckTest, ItsJsonIsWhatTheSchemaSays) {
  InstallABrokenPair();

  const ProcessResult result = Check({"--sources-only", "--table", table(), "--json"});

  const absl::StatusOr<Json> json = ParseJson(result.out, "check");
  ASSERT_TRUE(json.ok()) << result.err;
  EXPECT_TRUE(SchemaAccepts("harness/check/check.schema.json", *json)) << result.out;
  EXPECT_EQ((*json)["pairings"][0]["answer"], "broken");
  EXPECT_EQ((*json)["embedded"], true);
  EXPECT_EQ((*json)["packages"]["torch"], "2.13.0+cpu");
}

TEST_F(CheckTest, RowsThatHaveNotExpiredAreNearer) {
  InstallABrokenPair();
  PublishedTable published = ATable();
  published.rows.push_back(published.rows[1]);
  published.rows[2].id = "fresh";
  published.rows[2].engine_version = AVersion("pypi:verl==0.7.1", "0.7.1", "2026-03-16");
  published.rows[2].expires = "9999-12-31";
  ASSERT_TRUE(WriteFile(table(), ToText(ToJson(published))).ok());

  const ProcessResult result = Check({"--sources-only", "--table", table(), "--json"});

  const absl::StatusOr<Json> json = ParseJson(result.out, "check");
  ASSERT_TRUE(json.ok()) << result.err;
  const Json& nearest = (*json)["pairings"][0]["nearest"];
  ASSERT_EQ(nearest.size(), 2);
  EXPECT_EQ(nearest[0]["row"], "fresh");
  EXPECT_EQ(nearest[0]["expired"], false);
  EXPECT_EQ(nearest[1]["expired"], true);
}

TEST_F(CheckTest, ACommitIsCalledByItsId) {
  InstallABrokenPair(std::string(40, 'a'));
  const ProcessResult result = Check({"--sources-only", "--table", table()});
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("verl-torchtitan: verl aaaaaaaaa x torchtitan 0.3.0"),
                    HasSubstr("Published: works-except (measured 2026-06-01, expired")));
}

TEST_F(CheckTest, WithoutATableItSaysThatNothingCanBeSuggested) {
  InstallABrokenPair();
  EXPECT_THAT(Check({"--sources-only"}).out, HasSubstr("There is no published table"));
}

TEST_F(CheckTest, WhatCannotBeCheckedIsOneSentence) {
  EXPECT_THAT(Check({}).err,
              HasSubstr("has neither torchtitan nor transformers installed: install"));
  Install("torchtitan", "0.3.0", {{"__init__.py", ""}});
  const ProcessResult no_torch = Check({});
  EXPECT_EQ(no_torch.exit_code, 2);
  EXPECT_THAT(no_torch.err, HasSubstr("has no torch installed: install it"));
  EXPECT_THAT(bkm_.Run({"check", "--python", "/nowhere/python"}).err,
              HasSubstr("the Python interpreter /nowhere/python does not run: no such program"));
  InstallABrokenPair();
  const ProcessResult no_table = Check({"--sources-only", "--table", "/nowhere/table.json"});
  EXPECT_EQ(no_table.exit_code, 2);
  EXPECT_THAT(no_table.err, AllOf(HasSubstr("/nowhere/table.json"), Not(HasSubstr("\n\n"))));
}

class AuditCommandTest : public CheckTest {
 protected:
  ProcessResult Audit(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"audit", "--table", "table.json"});
    return bkm_.Run(arguments);
  }
};

TEST_F(AuditCommandTest, AFileIsLookedUpAndItsFaultsDecideTheExitCode) {
  ASSERT_TRUE(WriteFile(bkm_.folder() / "r.txt",
                        absl::StrCat("verl @ git+https://example.org/verl@", std::string(40, 'a'),
                                     "\ntorchtitan==0.3.0\ntorch==2.13.0\n"))
                  .ok());
  const ProcessResult works = Audit({"r.txt"});
  EXPECT_EQ(works.exit_code, 0) << works.out << works.err;
  EXPECT_THAT(works.out, AllOf(HasSubstr("WORKS with flex"), HasSubstr("attention=sdpa: refused"),
                               Not(HasSubstr("\x1b"))));
  EXPECT_EQ(Audit({"r.txt", "--uses", "attention=sdpa"}).exit_code, 1);
  EXPECT_THAT(Audit({"r.txt", "--format", "github"}).out, HasSubstr("::warning file=r.txt,line=1"));
  EXPECT_EQ((*ParseJson(Audit({"r.txt", "--json"}).out, "stdout"))["pairs"][0]["answer"], "works");
}

TEST_F(AuditCommandTest, AnEnvironmentIsLookedUpAndUnknownCountsOnlyWhenItIsAsked) {
  InstallABrokenPair(std::string(40, 'c'));
  const std::string python = (environment_ / "bin/python").string();
  const ProcessResult unknown = Audit({"--python", python});
  EXPECT_EQ(unknown.exit_code, 0) << unknown.out << unknown.err;
  EXPECT_THAT(unknown.out, HasSubstr("verl ccccccccc x torchtitan 0.3.0, torch 2.13.0+cpu\n"
                                     "UNKNOWN: the table has no row of these versions"));
  EXPECT_EQ(Audit({"--python", python, "--strict"}).exit_code, 1);
}

TEST_F(AuditCommandTest, WhatCannotBeReadIsOneSentence) {
  ASSERT_TRUE(WriteFile(bkm_.folder() / "uv.lock", "[[package]\n").ok());
  const auto complaint = [&](std::vector<std::string> arguments) {
    const ProcessResult result = Audit(std::move(arguments));
    EXPECT_EQ(result.exit_code, 2) << result.out;
    return result.err;
  };
  EXPECT_THAT(complaint({"uv.lock"}), HasSubstr("bkm: uv.lock: line 1: not TOML: "));
  EXPECT_THAT(complaint({"none.txt"}), HasSubstr("cannot read none.txt"));
  EXPECT_THAT(complaint({"uv.lock", "--python", "python3"}),
              HasSubstr("name a file or --python, not both"));
  EXPECT_THAT(complaint({"uv.lock", "--uses", "layuot=tp"}), HasSubstr("did you mean 'layout'?"));
}

}  // namespace
}  // namespace bkm
