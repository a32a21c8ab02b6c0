// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// Commands that write a folder or a file, killed at many moments: the same command, given again,
// ends as if nothing had happened, and what the killed one left is gone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/testing/bkm_under_test.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using Clock = std::chrono::steady_clock;

constexpr int kKills = 20;
constexpr char kBare[] = "/usr/bin/python3";  // the interpreter of the runtime "bare"

// The names of the files at or below `path`, relative to it.
std::set<std::string> FilesOf(const fs::path& path) {
  std::set<std::string> files;
  std::error_code error;
  if (fs::is_regular_file(path, error)) files.insert(".");
  for (const auto& entry : fs::recursive_directory_iterator(path, error)) {
    if (entry.is_regular_file() && entry.path().filename() != ".lock" && !IsCutOff(entry.path()))
      files.insert(entry.path().lexically_relative(path));
  }
  return files;
}

// What each command reads is made once; no test changes it.
class KilledCommandTest : public ::testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() {
    bkm_ = new BkmUnderTest;
    const std::string matrix = bkm_->WriteMatrix({"passes", "refuses", "import_raises", "exits"});
    const auto run = [&](std::vector<std::string> arguments) {
      const ProcessResult result = bkm_->Run(std::move(arguments));
      ASSERT_TRUE(result.exit_code == 0 || result.exit_code == 1) << result.err;
    };
    run({"pack", matrix, "--out", In("cells.bkm")});
    run({"work", In("cells.bkm"), "--out", In("results.bkm"), "--python", kBare});
    const auto keep = [&](const char* name, std::vector<std::string> options) {
      options.insert(options.begin(), {"run", matrix});
      run(std::move(options));
      fs::rename(bkm_->out(), In(name));
    };
    keep("run", {});
    keep("one", {"--shard", "1/2"});
    keep("two", {"--shard", "2/2"});
    matrix_ = new std::string(matrix);
    // These cells have no numbers to compare.
    run({"run", bkm_->WriteMatrix({"refuses", "import_raises", "exits"})});
    fs::rename(bkm_->out(), In("reds"));
    bkm_->WriteMatrix({"passes", "refuses", "import_raises", "exits"});
  }
  static void TearDownTestSuite() {
    delete matrix_;
    delete bkm_;
  }
  static std::string In(const char* name) { return bkm_->folder() / "in" / name; }
  fs::path Parent() const { return bkm_->folder() / absl::StrCat("made-by-", GetParam()); }
  fs::path Out() const { return Parent() / "out"; }

  std::vector<std::string> Arguments() const {
    const std::string command = GetParam();
    if (command == "pack") return {"pack", *matrix_, "--out", Out()};
    if (command == "unpack") return {"unpack", In("results.bkm"), Out()};
    if (command == "site") return {"site", Out(), "--run", In("run")};
    if (command == "accept") return {"accept", In("reds"), "--baseline", Out()};
    if (command == "judge") return {"judge", Out()};
    if (command == "replay") return {"replay", Out(), "engine=*/passes/*"};
    return {"merge", In("one"), In("two"), "--out", Out()};
  }

  // What the command finds when it starts for the first time.
  void Prepare() const {
    ASSERT_TRUE(RemoveTree(Out()).ok());
    const std::string command = GetParam();
    if (command != "judge" && command != "replay") return;
    fs::copy(In("run"), Out(), fs::copy_options::recursive);
    if (command == "replay") return;
    fs::remove(Out() / "table.md");
    for (const auto& cell : fs::directory_iterator(Out() / "cells"))
      fs::remove(cell.path() / "verdict.json");
  }

  // Names beside the output that begin with a dot.
  std::set<std::string> Leftovers() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(Parent())) {
      if (absl::StartsWith(entry.path().filename().string(), "."))
        names.insert(entry.path().filename());
    }
    return names;
  }

  static BkmUnderTest* bkm_;
  static std::string* matrix_;
};
BkmUnderTest* KilledCommandTest::bkm_ = nullptr;
std::string* KilledCommandTest::matrix_ = nullptr;

TEST_P(KilledCommandTest, CanBeRepeated) {
  ASSERT_TRUE(CreateDirectories(Parent()).ok());
  auto usual = std::chrono::microseconds::max();  // on a machine that may be busy now and then
  const auto run_to_its_end = [&] {
    const auto start = Clock::now();
    ProcessResult result = bkm_->Run(Arguments());
    usual = std::min(usual,
                     std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start));
    return result;
  };
  Prepare();
  const ProcessResult undisturbed = run_to_its_end();
  ASSERT_EQ(undisturbed.exit_code, 0) << undisturbed.err;
  const std::set<std::string> files = FilesOf(Out());
  ASSERT_FALSE(files.empty());
  const bool is_run = files.contains("run.json");
  const Json run = is_run ? StableRun(*bkm_, *ReadJsonFile(Out() / "run.json")) : Json();

  int killed = 0;
  for (int i = 0; i < kKills; ++i) {
    Prepare();
    killed +=
        bkm_->RunAndKill(Arguments(), {}, usual * (2 * i + 1) / (2 * kKills), Parent() / "stderr");

    const ProcessResult again = run_to_its_end();

    EXPECT_EQ(again.exit_code, 0) << "kill " << i << ": " << again.err;
    EXPECT_EQ(FilesOf(Out()), files) << "kill " << i;
    EXPECT_THAT(Leftovers(), IsEmpty()) << "kill " << i;
    if (is_run) {
      EXPECT_EQ(Difference(run, StableRun(*bkm_, *ReadJsonFile(Out() / "run.json"))), "")
          << "kill " << i;
    }
  }
  EXPECT_GE(killed, kKills / 2) << "most had ended before";
}

INSTANTIATE_TEST_SUITE_P(Commands, KilledCommandTest,
                         ::testing::Values("pack", "unpack", "site", "merge", "accept", "judge",
                                           "replay"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace bkm
