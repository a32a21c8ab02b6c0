// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// The wheel on Debian systems without compiler, git and libpython, for a user without rights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/subprocess.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class DebianTest : public ::testing::Test {
 protected:
  explicit DebianTest(std::string suite) : suite_(std::move(suite)) {}
  ~DebianTest() override {
    if (!work_.empty()) RemoveTree(work_).IgnoreError();
  }

  void SetUp() override {
    const char* cache = std::getenv("BKM_CACHE");
    if (!cache) GTEST_SKIP() << "BKM_CACHE is not set: run it by tools/bkm test --all";
    if (::geteuid() != 0) GTEST_SKIP() << "only root can make another root folder";
    root_ = fs::path(cache) / "roots" / suite_;
    if (!fs::exists(root_)) Bootstrap();
    work_ = *CreateTempDirectory(fs::path(cache) / "tmp", suite_ + "-");
    Share();
  }

  void Bootstrap() {
    const fs::path part = root_.string() + ".part";
    ASSERT_TRUE(RemoveTree(part).ok());
    fs::create_directories(part);
    // debootstrap and what it calls are in folders that Bazel's PATH lacks.
    const ProcessResult made =
        *RunCommand({.argv = {"/bin/sh", "-c",
                              "PATH=$PATH:/usr/sbin:/sbin; exec debootstrap --variant=minbase "
                              "--include=python3,python3-venv,ca-certificates \"$@\"",
                              "sh", suite_, part.string()}});
    if (made.exit_code == 127) GTEST_SKIP() << "debootstrap is not installed: " << made.err;
    if (made.exit_code != 0) GTEST_SKIP() << "debootstrap failed: " << made.out << made.err;
    fs::rename(part, root_);
  }

  // The wheel, a pair that passes, and a matrix that runs the pair in the system's Python.
  void Share() {
    const fs::path runfiles = fs::path(std::getenv("TEST_SRCDIR")) / std::getenv("TEST_WORKSPACE");
    in_root_ = runfiles / "package/in_root";
    fs::create_directories(shared());
    for (const auto& entry : fs::directory_iterator(runfiles / "package")) {
      if (entry.path().extension() == ".whl")
        fs::copy_file(fs::canonical(entry.path()), shared() / entry.path().filename());
    }
    for (const char* package : {"engine/fake_engine", "library/fake_library"}) {
      const fs::path file = fs::path(package) / "__init__.py";
      fs::create_directories((shared() / "passes" / file).parent_path());
      fs::copy_file(runfiles / "fixtures/packages/passes" / file, shared() / "passes" / file);
    }
    const auto write = [&](const char* file, const Json& json) {
      ASSERT_TRUE(WriteFile(shared() / file, ToText(json)).ok());
    };
    write("runtimes/system.json", {{"schema", 1},
                                   {"name", "system"},
                                   {"policy", "existing"},
                                   {"python", suite_ == "bookworm" ? "3.11" : "3.13"},
                                   {"interpreter", "/usr/bin/python3"}});
    const Json group = {{"engine", {{"kind", "fixture"}, {"subjects", {"path:passes/engine"}}}},
                        {"library", {"path:passes/library"}},
                        {"runtime", {"system"}},
                        {"probe", {{"attention", {"flex"}}, {"steps", 1}, {"seed", {1, 2}}}}};
    write("matrix.json", {{"schema", 1}, {"name", "tiny"}, {"groups", {group}}});
  }
  fs::path shared() const { return work_ / "shared"; }

  // As a user without rights, in the other system.
  ProcessResult Run(const std::string& command) const {
    return *RunCommand({.argv = {in_root_, root_, work_, shared(), command},
                        .timeout = std::chrono::seconds(1500)});
  }
  std::string Ran(const std::string& command) const {
    const ProcessResult result = Run(command);
    EXPECT_EQ(result.exit_code, 0) << command << "\n" << result.out << result.err;
    return result.out;
  }

  void Install() const {
    Ran("python3 -m venv tool && tool/bin/pip install -q uv && "
        "tool/bin/uv tool install -q /shared/bkm_harness-*.whl");
    EXPECT_THAT(Ran(".local/bin/bkm --version"), HasSubstr("bkm "));
  }
  // A pair in the system's Python, which has no libpython. One worker serves both cells.
  void RunAPairInTheSystemsPython() const {
    EXPECT_EQ(Run("ls /usr/lib/x86_64-linux-gnu/libpython*").exit_code, 2);
    EXPECT_THAT(Ran("cp -r /shared pair && cd pair && ../.local/bin/bkm run matrix.json --out run"),
                HasSubstr("tiny: 2 ok"));
    EXPECT_EQ(Ran("grep -l '\"alone\": true' pair/run/cells/*/request.json | wc -l"), "2\n");
  }

  const std::string suite_;
  fs::path in_root_, root_, work_;
};

class BookwormTest : public DebianTest {
 protected:
  BookwormTest() : DebianTest("bookworm") {}
};

// CPython 3.13.
class TrixieTest : public DebianTest {
 protected:
  TrixieTest() : DebianTest("trixie") {}
};

TEST_F(BookwormTest, AUserWithoutRightsInstallsChecksAndRuns) {
  ASSERT_EQ(Run("command -v gcc || command -v git || exit 3").exit_code, 3);
  Install();
  RunAPairInTheSystemsPython();

  Ran("tool/bin/uv venv -q env && tool/bin/uv pip install -q --python env/bin/python "
      "$([ -n \"${UV_FIND_LINKS:-}\" ] || echo --torch-backend cpu) torch==2.13.0 "
      "transformers==5.10.2");
  EXPECT_THAT(Ran(".local/bin/bkm check --python env/bin/python"),
              HasSubstr("transformers 5.10.2"));

  EXPECT_THAT(Ran(".local/bin/bkm run $(find .local -path '*matrices/quickstart.json') "
                  "--filter engine=transformers,attention=sdpa --out run"),
              HasSubstr("quickstart: 1 ok"));
  EXPECT_NE(Run("ls .cache/bkm/libtorch").exit_code, 0)
      << "golden and floors came with the package";
}

TEST_F(TrixieTest, CellsRunInItsPythonWithoutLibpython) {
  Install();
  RunAPairInTheSystemsPython();
  EXPECT_THAT(Run(".local/bin/bkm check").err,
              HasSubstr("has neither torchtitan nor transformers installed"));
}

}  // namespace
}  // namespace bkm
