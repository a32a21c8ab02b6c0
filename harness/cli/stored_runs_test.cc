// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// Every text that bkm makes of the stored runs of fixtures/runs, byte by byte as in
// golden/rendered: a change that means to keep verdicts and texts must keep these.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <regex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "harness/base/files.h"
#include "harness/base/generated_file.h"
#include "harness/base/subprocess.h"
#include "harness/testing/bkm_under_test.h"
#include "harness/testing/no_network.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

constexpr char kRendered[] = "golden/rendered/README.md";
constexpr char kAcceptRendered[] =
    "bazel test //harness/cli:stored_runs_test --test_env=BKM_ACCEPT=1 --nocache_test_results";

using Texts = std::map<std::string, std::string>;  // by path

// Files below `folder`, each as `prefix`/path.
Texts TextsBelow(const fs::path& folder, const std::string& prefix) {
  Texts texts;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file())
      texts[prefix / entry.path().lexically_relative(folder)] = *ReadFile(entry.path());
  }
  return texts;
}

// The day on which a site or a table was made.
std::string WithoutToday(const std::string& text) {
  static const auto& kMade = *new std::regex("(Made by bkm on |\n  \"date\": \")[0-9-]{10}");
  return std::regex_replace(text, kMade, "$1YYYY-MM-DD");
}

// Not copies of evidence, pages of no run, and what the registry decides.
bool IsRendered(const std::string& path) {
  return !absl::EndsWith(path, ".observation.json") && !absl::EndsWith(path, ".css") &&
         !absl::EndsWith(path, ".js") && !absl::EndsWith(path, "/about.html") &&
         !absl::StrContains(path, "/pylock.") &&
         !(absl::StartsWith(path, "site/") && absl::EndsWith(path, ".verdict.json"));
}

// The first line in which they differ.
std::string FirstDifference(const std::string& golden, const std::string& text) {
  const std::vector<std::string> before = absl::StrSplit(golden, '\n');
  const std::vector<std::string> now = absl::StrSplit(text, '\n');
  size_t line = 0;
  while (line < before.size() && line < now.size() && before[line] == now[line]) ++line;
  const auto at = [&](const std::vector<std::string>& lines) {
    return line < lines.size() ? lines[line] : std::string("(the end)");
  };
  return absl::StrCat("line ", line + 1, "\n  golden: ", at(before), "\n  now:    ", at(now));
}

class StoredRunsTest : public ::testing::TestWithParam<const char*> {
 protected:
  StoredRunsTest() {
    EXPECT_TRUE(CreateDirectories(run()).ok());
    const fs::path archive = Runfile(absl::StrCat("fixtures/runs/", GetParam(), ".tar.xz"));
    const absl::StatusOr<ProcessResult> unpacked =
        RunCommand({.argv = {"tar", "-xJf", archive, "-C", run()}});
    EXPECT_TRUE(unpacked.ok() && unpacked->ok());
  }

  fs::path run() const { return bkm_.folder() / "runs" / GetParam(); }

  std::string OutputOf(std::vector<std::string> arguments,
                       std::map<std::string, std::string> environment = {}) {
    const ProcessResult result = bkm_.Run(std::move(arguments), std::move(environment));
    EXPECT_LE(result.exit_code, 1) << result.err;
    return absl::StrCat(result.out, "\nexit ", result.exit_code, "\n");
  }

  Texts Render() {
    Texts texts;
    texts["judge.txt"] = OutputOf({"judge", run()});
    for (const char* file : {"run.json", "table.md"}) texts[file] = *ReadFile(run() / file);
    for (const auto& cell : fs::directory_iterator(run() / "cells")) {
      const std::string name = cell.path().filename();
      texts["verdicts/" + name + ".json"] = *ReadFile(cell.path() / "verdict.json");
      texts["explain/" + name + ".txt"] = OutputOf({"explain", run(), name});
    }
    OutputOf({"site", bkm_.folder() / "site", "--run", run()});
    texts.merge(TextsBelow(bkm_.folder() / "site", "site"));
    return texts;
  }

  // `folders`: what of the golden folder is compared; all of it belongs to the texts.
  void CompareWithGoldens(Texts texts, const std::vector<std::string>& folders) {
    const fs::path goldens = fs::canonical(Runfile(kRendered)).parent_path() / GetParam();
    std::erase_if(texts, [](const auto& text) { return !IsRendered(text.first); });
    for (auto& [path, text] : texts) text = WithoutToday(bkm_.WithoutPaths(text));
    if (IsAccepting()) {
      for (const std::string& folder : folders) fs::remove_all(goldens / folder);
      for (const auto& [path, text] : texts) ASSERT_TRUE(WriteFile(goldens / path, text).ok());
      GTEST_SKIP() << "accepted: see git diff golden/rendered";
    }
    Texts expected;
    for (const std::string& folder : folders) {
      if (fs::is_directory(goldens / folder)) {
        expected.merge(TextsBelow(goldens / folder, folder));
      } else {
        expected[folder] = *ReadFile(goldens / folder);
      }
    }
    for (const auto& [path, text] : expected) {
      const auto now = texts.find(path);
      if (now == texts.end()) {
        ADD_FAILURE() << path << " is not made any more";
      } else if (now->second != text) {
        ADD_FAILURE() << path << " differs in " << FirstDifference(text, now->second)
                      << "\nif it should: " << kAcceptRendered;
      }
    }
    for (const auto& [path, text] : texts)
      EXPECT_TRUE(expected.contains(path))
          << path << " is new; if it should be: " << kAcceptRendered;
  }

  const BkmUnderTest bkm_;
};

TEST_P(StoredRunsTest, AreJudgedAndToldAsBefore) {
  CompareWithGoldens(Render(),
                     {"judge.txt", "run.json", "table.md", "verdicts", "explain", "site"});
}

TEST_P(StoredRunsTest, AreJudgedAlikeTwice) {
  OutputOf({"judge", run()});
  const std::string once = *ReadFile(run() / "run.json");
  OutputOf({"judge", run()});
  EXPECT_EQ(*ReadFile(run() / "run.json"), once);
}

INSTANTIATE_TEST_SUITE_P(Runs, StoredRunsTest, ::testing::Values("real", "old"),
                         [](const auto& info) { return std::string(info.param); });

// Looks up versions and locks in the registry and the mirrors.
class PublishedRunTest : public StoredRunsTest {
 protected:
  void SetUp() override {
    for (const char* name : {"BKM_UV", "BKM_GIT_MIRRORS"}) {
      const char* value = std::getenv(name);
      if (!value || !*value) GTEST_SKIP() << name << " is not set";
      environment_[name] = value;
    }
    const ProcessResult result = bkm_.Run(Publish(), environment_);
    if (result.exit_code != 0 && IsNoNetwork(result.err)) GTEST_SKIP() << result.err;
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }

  fs::path out() const { return bkm_.folder() / "published"; }
  std::vector<std::string> Publish() const {
    return {"publish", run(), "--out", out(), "--date", "2026-11-27", "--without-links"};
  }

  std::map<std::string, std::string> environment_;
};

TEST_P(PublishedRunTest, IsPublishedAsBefore) {
  CompareWithGoldens(TextsBelow(out(), "published"), {"published"});
}

// Most kills hit the end, where files are written.
TEST_P(PublishedRunTest, APublicationThatWasKilledIsRepeated) {
  const Texts published = TextsBelow(out(), "published");
  auto usual = std::chrono::microseconds::max();  // on a machine that may be busy now and then
  const auto run_to_its_end = [&] {
    const auto start = std::chrono::steady_clock::now();
    const int exit_code = bkm_.Run(Publish(), environment_).exit_code;
    usual = std::min(usual, std::chrono::duration_cast<std::chrono::microseconds>(
                                std::chrono::steady_clock::now() - start));
    return exit_code;
  };
  run_to_its_end();
  int killed = 0;
  for (const double share : {0.3, 0.6, 0.9, 0.94, 0.97, 0.99}) {
    ASSERT_TRUE(RemoveTree(out()).ok());
    killed +=
        bkm_.RunAndKill(Publish(), environment_,
                        std::chrono::microseconds(static_cast<int64_t>(usual.count() * share)),
                        bkm_.folder() / "log");
    const bool is_whole = fs::exists(out() / "table.json");
    EXPECT_TRUE(!is_whole || fs::exists(out() / "table.md")) << share;
    EXPECT_EQ(run_to_its_end(), 0) << share;
    Texts again = TextsBelow(out(), "published");
    std::erase_if(again, [&](const auto& text) { return IsCutOff(bkm_.folder() / text.first); });
    EXPECT_EQ(again, published) << share;
  }
  EXPECT_GE(killed, 2) << "most had ended before";
}

INSTANTIATE_TEST_SUITE_P(Runs, PublishedRunTest, ::testing::Values("real"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace bkm
