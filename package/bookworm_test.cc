// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// The wheel on a system without compiler, git and libpython, for a user without rights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/subprocess.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class BookwormTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* cache = std::getenv("BKM_CACHE");
    if (!cache) GTEST_SKIP() << "BKM_CACHE is not set: run it by tools/bkm test --all";
    if (::geteuid() != 0) GTEST_SKIP() << "only root can make another root folder";
    root_ = fs::path(cache) / "roots/bookworm";
    if (!fs::exists(root_)) Bootstrap();
    work_ = *CreateTempDirectory(fs::path(cache) / "tmp", "bookworm-");
  }
  ~BookwormTest() override {
    if (!work_.empty()) RemoveTree(work_).IgnoreError();
  }

  void Bootstrap() {
    const fs::path part = root_.string() + ".part";
    ASSERT_TRUE(RemoveTree(part).ok());
    fs::create_directories(part);
    const absl::StatusOr<ProcessResult> made = RunCommand(
        {.argv = {"debootstrap", "--variant=minbase",
                  "--include=python3,python3-venv,ca-certificates", "bookworm", part.string()}});
    if (absl::IsNotFound(made.status())) GTEST_SKIP() << "debootstrap is not installed";
    if (made->exit_code != 0) GTEST_SKIP() << "debootstrap failed: " << made->out;
    fs::rename(part, root_);
  }

  // As a user without rights, in the other system.
  ProcessResult Run(const std::string& command) const {
    const fs::path package =
        fs::path(std::getenv("TEST_SRCDIR")) / std::getenv("TEST_WORKSPACE") / "package";
    fs::path wheel;
    for (const auto& entry : fs::directory_iterator(package)) {
      if (entry.path().extension() == ".whl") wheel = fs::canonical(entry.path());
    }
    return *RunCommand({.argv = {package / "in_root", root_, work_, wheel.parent_path(), command},
                        .timeout = std::chrono::seconds(1500)});
  }
  std::string Ran(const std::string& command) const {
    const ProcessResult result = Run(command);
    EXPECT_EQ(result.exit_code, 0) << command << "\n" << result.out << result.err;
    return result.out;
  }

  fs::path root_, work_;
};

TEST_F(BookwormTest, AUserWithoutRightsInstallsChecksAndRuns) {
  ASSERT_EQ(Run("command -v gcc || command -v git || exit 3").exit_code, 3);
  EXPECT_EQ(Run("ls /usr/lib/x86_64-linux-gnu/libpython*").exit_code, 2);
  Ran("python3 -m venv tool && tool/bin/pip install -q uv && "
      "tool/bin/uv tool install -q /shared/bkm_harness-*.whl");
  EXPECT_THAT(Ran(".local/bin/bkm --version"), HasSubstr("bkm "));

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

}  // namespace
}  // namespace bkm
