// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/installation.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace bkm
