// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/installation.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// An installation with its programs in `bin` and its checkout in `root`, below one folder.
Installation Install(const std::string& bin, const std::string& root) {
  const fs::path folder = *CreateTempDirectory(::testing::TempDir(), "installed-");
  Installation installed{.root = folder / root, .bin = folder / bin};
  for (const fs::path& program :
       {installed.cell_worker(), installed.python_worker(), installed.worker_library()})
    EXPECT_TRUE(WriteFile(program, program.filename().string()).ok());
  for (const char* name : {"bkm_cell/cell.py", "bkm_cell/adapters/verl.py"})
    EXPECT_TRUE(WriteFile(installed.python_code() / name, name).ok());
  return installed;
}

std::string DigestWith(const std::string& name, const std::string& content) {
  const Installation installed = Install("bin", "checkout");
  EXPECT_TRUE(WriteFile(installed.python_code() / name, content).ok());
  return *installed.CellCodeDigest();
}

TEST(InstallationTest, EqualCellCodeHasOneDigestWhereverItLies) {
  EXPECT_EQ(*Install("a", "z").CellCodeDigest(), *Install("z", "a").CellCodeDigest());
}

TEST(InstallationTest, OnlyWhatRunsInACellCounts) {
  const std::string digest = *Install("bin", "checkout").CellCodeDigest();
  EXPECT_EQ(DigestWith("README.md", "words"), digest);
  EXPECT_EQ(DigestWith("run_tests.py", "x = 1"), digest);
  EXPECT_EQ(DigestWith("bkm_cell/cell_test.py", "x = 1"), digest);
  EXPECT_EQ(DigestWith("bkm_cell/__pycache__/cell.cpython-311.pyc", "x"), digest);
}

TEST(InstallationTest, WhatAFileHoldsAndWhereItLiesInThePackageCount) {
  const std::string digest = *Install("bin", "checkout").CellCodeDigest();
  EXPECT_NE(DigestWith("bkm_cell/cell.py", "x = 1"), digest);
  EXPECT_NE(DigestWith("bkm_cell/verl.py", "x"), DigestWith("bkm_cell/shims/verl.py", "x"));
}

// What the launcher does in build_beside.
class IsBuildingTest : public ::testing::Test {
 protected:
  ~IsBuildingTest() override { ::unsetenv("BKM_BUILDING"); }
  void Tell(const std::string& text) {
    std::ofstream(file_) << text;  // in place: WriteFile would make another file
    ::setenv("BKM_BUILDING", file_.c_str(), 1);
  }
  const fs::path file_ = *CreateTempDirectory(::testing::TempDir(), "built-") / "building";
};

TEST_F(IsBuildingTest, NobodyBuildsWhereTheLauncherSaysNothing) {
  EXPECT_FALSE(*Installation::IsBuilding());
}

TEST_F(IsBuildingTest, TheLockSaysSoUntilTheBuildHasEnded) {
  Tell("");
  const int lock = ::open(file_.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  EXPECT_TRUE(*Installation::IsBuilding());
  Tell("built\n");
  EXPECT_TRUE(*Installation::IsBuilding()) << "it still holds the lock";
  ::close(lock);
  EXPECT_FALSE(*Installation::IsBuilding());
}

TEST_F(IsBuildingTest, ABuildThatFailedOrWasKilledIsAnError) {
  Tell("a.cc:1: error: x\nthe build failed (log: l)\n");
  EXPECT_EQ(Installation::IsBuilding().status().message(),
            "a.cc:1: error: x\nthe build failed (log: l)");
  Tell("");
  EXPECT_FALSE(Installation::IsBuilding().ok());
}

}  // namespace
}  // namespace bkm
