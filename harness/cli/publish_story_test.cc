// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// A real run becomes a table whose lock can be installed. It has releases only, because the mirrors
// of git subjects lack files. A second story diffs a branch that moved past a culprit.
// Needs the registry and mirrors; skipped without them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/testing/real_bkm.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kTorchIndex[] = "https://download.pytorch.org/whl/cpu/";

std::string Uv(std::vector<std::string> arguments) {
  const char* uv = std::getenv("BKM_UV");
  arguments.insert(arguments.begin(), uv && *uv ? uv : "uv");
  const absl::StatusOr<ProcessResult> result =
      RunCommand({.argv = arguments, .unset_env = {"UV_PYTHON", "VIRTUAL_ENV"}});
  if (!result.ok()) return std::string(result.status().message());
  return result->ok() ? "" : result->err;
}

TEST(PublishStoryTest, TheLockOfAGoodRowInstallsIntoAnEmptyEnvironment) {
  const absl::StatusOr<Json> run =
      RunRealCells({"--engine", "verl-fsdp@pypi:verl==0.9.1", "--library",
                    "pypi:transformers==5.10.2", "--attention", "sdpa", "--steps", "1"},
                   "run");
  if (!run.ok() && IsNoNetwork(run.status())) GTEST_SKIP() << run.status();
  ASSERT_TRUE(run.ok()) << run.status();
  const fs::path table_folder = RealRunFolder("published");
  const ProcessResult published =
      *RunRealBkm({"publish", RealRunFolder("run").string(), "--out", table_folder.string()});
  ASSERT_EQ(published.exit_code, 0) << published.err;
  const Json row = (*ReadJsonFile(table_folder / "table.json"))["rows"][0];
  ASSERT_EQ(row["status"], "works") << row;
  ASSERT_NE(row["pylock"], "") << published.err;

  // If torch comes from a local folder, the public index may be unreachable.
  const fs::path lock = table_folder / row["pylock"].get<std::string>();
  std::string text = *ReadFile(lock);
  EXPECT_THAT(text, HasSubstr(kTorchIndex));
  if (const char* links = std::getenv("UV_FIND_LINKS"); links && *links)
    text = absl::StrReplaceAll(text, {{kTorchIndex, absl::StrCat("file://", links, "/")}});
  const fs::path here = RealRunFolder("here") / lock.filename();
  ASSERT_TRUE(WriteFile(here, text).ok());

  const fs::path environment = RealRunFolder("environment");
  ASSERT_EQ(Uv({"venv", "--quiet", "--clear", "--python", "3.11", environment.string()}), "");
  const std::string python = (environment / "bin/python").string();
  ASSERT_EQ(Uv({"pip", "sync", "--quiet", "--preview-features", "pylock", "--python", python,
                here.string()}),
            "");
  EXPECT_EQ(Uv({"pip", "check", "--quiet", "--python", python}), "");
  const absl::StatusOr<std::string> versions = RunForOutput(
      {.argv = {python, "-I", "-c",
                "import torch, transformers, verl\nfrom importlib.metadata import version\n"
                "print(torch.__version__, transformers.__version__, version('verl'))"}});
  ASSERT_TRUE(versions.ok()) << versions.status();
  EXPECT_THAT(*versions, HasSubstr("2.13.0+cpu 5.10.2 0.9.1\n"));

  // bkm check knows the installed environment, and agrees with the row.
  const ProcessResult check =
      *RunRealBkm({"check", "--python", python, "--table", (table_folder / "table.json").string(),
                   "--out", RealRunFolder("check").string(), "--json"});
  EXPECT_EQ(check.exit_code, 0) << check.out << check.err;
  int found = 0;
  const Json checked = Json::parse(check.out, nullptr, false);
  for (const Json& pairing : checked["pairings"]) {
    if (pairing["engine"] != "verl-fsdp") continue;
    ++found;
    EXPECT_EQ(pairing["known_row"]["row"], row["id"]);
    EXPECT_THAT(pairing["answer"], ::testing::AnyOf("works", "works except"));
  }
  EXPECT_EQ(found, 1) << check.out;

  const ProcessResult verified = *RunRealBkm({"publish", "--verify", table_folder.string()});
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  EXPECT_THAT(verified.out, HasSubstr(": 0 rows no longer hold\n"));
  EXPECT_EQ(
      RunRealBkm({"publish", "--verify", table_folder.string(), "--date", "2099-01-01"})->exit_code,
      1)
      << "evidence ages";
}

// torchtitan 632f67f (#3269) changes the constructor of optimizers that verl v0.8.0 calls.
TEST(PublishStoryTest, ABranchThatMovedIsDiffedWithTheCommitsThatItMovedOver) {
  if (Mirrors().empty()) GTEST_SKIP() << "no mirrors: set BKM_GIT_MIRRORS";
  const fs::path mirrors = RealRunFolder("mirrors");
  for (const char* name : {"torchtitan", "verl"}) {
    const absl::Status made = BorrowMirror(name, mirrors);
    ASSERT_TRUE(made.ok()) << made;
  }
  const std::string verl = "7aed6b230776f963fa09509c10d9c3a767d1102c";  // v0.8.0
  for (const auto& [run, revision] : {std::pair("before", "632f67f~2"), {"after", "632f67f"}}) {
    const absl::Status moved =
        RunGit({"-C", (mirrors / "torchtitan.git").string(), "branch", "-f", "moving", revision});
    ASSERT_TRUE(moved.ok()) << moved;
    const absl::StatusOr<Json> cells = RunRealCells(
        {"--engine", "verl-torchtitan@git:verl@" + verl, "--library", "git:torchtitan@moving",
         "--attention", "flex", "--steps", "1", "--git-mirror", mirrors.string()},
        run);
    if (!cells.ok() && IsNoNetwork(cells.status())) GTEST_SKIP() << cells.status();
    ASSERT_TRUE(cells.ok()) << cells.status();
  }
  const ProcessResult diff =
      *RunRealBkm({"diff", RealRunFolder("before").string(), RealRunFolder("after").string(),
                   "--git-mirror", mirrors.string()});
  EXPECT_EQ(diff.exit_code, 1) << diff.err;
  EXPECT_THAT(diff.out,
              AllOf(HasSubstr(": 1 regressed\n\nregressed: broken at construct, "
                              "unexpected-keyword: TypeError: OptimizersContainer.Config"),
                    HasSubstr("\n  moved: torchtitan moving (e4b1220d7, 2026-06-04) -> moving "
                              "(632f67f12, 2026-06-04), 2 commits\n"
                              "    632f67f12 2026-06-04 [optimizer] support mixed optimizers "
                              "(#3269)\n    baba6d82e 2026-06-04 ")));
}

}  // namespace
}  // namespace bkm
