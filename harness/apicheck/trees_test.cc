// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Trees of commits: read from the object store, scanned once.
#include <gmock/gmock.h>

#include "harness/apicheck/source_tree.h"
#include "harness/base/files.h"
#include "harness/source/git_fixture.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

class TreesTest : public testing::Test {
 protected:
  TreesTest()
      : folder_(fs::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    EXPECT_TRUE(RemoveTree(folder_).ok());
  }
  std::unique_ptr<SymbolTables> Tables() {
    auto tables = SymbolTables::Open("/usr/bin/python3", folder_ / "cache");
    EXPECT_TRUE(tables.ok()) << tables.status();
    return *std::move(tables);
  }
  const fs::path folder_;
};

TEST_F(TreesTest, CommitsWithTheSamePackageShareATreeAndItsFiles) {
  GitFixture git(folder_ / "repository");
  git.Write("lib/__init__.py", "a = 1\n");
  git.Write("lib/sub/x.py", "b = 1\n");
  const std::string first = git.Commit("first", "2026-01-01");
  git.Write("README.md", "words\n");
  const std::string second = git.Commit("second", "2026-01-02");
  git.Write("lib/sub/x.py", "c = 1\n");
  const std::string third = git.Commit("third", "2026-01-03");
  const std::unique_ptr<SymbolTables> tables = Tables();
  GitTrees trees(GitRepository(git.git_dir()), "lib", *tables);
  const auto loaded = trees.Load({first, second, third});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)[0], (*loaded)[1]);
  EXPECT_NE((*loaded)[0]->id, (*loaded)[2]->id);
  const int x = tables->Module("lib.sub.x");
  EXPECT_NE((*loaded)[0]->File(x), (*loaded)[2]->File(x));
  EXPECT_EQ((*loaded)[0]->File(tables->Module("lib")), (*loaded)[2]->File(tables->Module("lib")));
  EXPECT_EQ((*loaded)[0]->File(tables->Module("lib.sub")), SourceTree::kFolder);
  EXPECT_EQ(tables->scanned(), 3);
}

TEST_F(TreesTest, WhatWasScannedOnceIsKept) {
  GitFixture git(folder_ / "repository");
  git.Write("lib/__init__.py", "a = 1\n");
  const std::string commit = git.Commit("first", "2026-01-01");
  {
    const std::unique_ptr<SymbolTables> tables = Tables();
    ASSERT_TRUE(GitTrees(GitRepository(git.git_dir()), "lib", *tables).Load({commit}).ok());
    EXPECT_EQ(tables->scanned(), 1);
  }
  const std::unique_ptr<SymbolTables> tables = Tables();
  const auto loaded = GitTrees(GitRepository(git.git_dir()), "lib", *tables).Load({commit});
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(tables->scanned(), 0);
  EXPECT_TRUE(tables->NamesIn((*loaded)[0]->File(tables->Module("lib"))).bound.contains("a"));
}

TEST_F(TreesTest, PackageBelowSrcIsFoundAndAMissingOneIsNull) {
  GitFixture git(folder_ / "repository");
  git.Write("README.md", "words\n");
  const std::string before = git.Commit("before", "2026-01-01");
  git.Write("src/lib/__init__.py", "a = 1\n");
  const std::string after = git.Commit("after", "2026-01-02");
  const std::unique_ptr<SymbolTables> tables = Tables();
  const auto loaded = GitTrees(GitRepository(git.git_dir()), "lib", *tables).Load({before, after});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)[0], nullptr);
  EXPECT_EQ((*loaded)[1]->root, "src/");
}

TEST_F(TreesTest, FolderAndCommitWithTheSameFilesShareTheirTables) {
  GitFixture git(folder_ / "repository");
  git.Write("lib/__init__.py", "a = 1\n");
  const std::string commit = git.Commit("first", "2026-01-01");
  const std::unique_ptr<SymbolTables> tables = Tables();
  ASSERT_TRUE(GitTrees(GitRepository(git.git_dir()), "lib", *tables).Load({commit}).ok());
  const auto tree = FolderTree(*tables, git.folder(), "lib");
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ(tables->scanned(), 1);
}

TEST_F(TreesTest, FolderWithoutFilesIsAnError) {
  const std::unique_ptr<SymbolTables> tables = Tables();
  EXPECT_EQ(FolderTree(*tables, folder_, "lib").status().message(),
            (folder_ / "lib").string() + " has no Python files");
}

}  // namespace
}  // namespace bkm
