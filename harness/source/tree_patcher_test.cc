// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/tree_patcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/source/git_fixture.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kFirst[] = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";

class TreePatcherTest : public ::testing::Test {
 protected:
  TreePatcherTest()
      : folder_(fs::path(::testing::TempDir()) /
                ::testing::UnitTest::GetInstance()->current_test_info()->name()),
        git_((fs::remove_all(folder_), folder_ / "repository")),
        patcher_(GitRepository(git_.git_dir()), "lib", folder_ / "scratch") {
    git_.Write("lib/a.py", kFirst);
    git_.Write("lib/b.py", "b = 1\n");
    git_.Write("README", "not of the package\n");
    git_.Commit("first", "2026-03-01");
  }
  std::string TreeOf(const std::string& commit) { return **patcher_.TreeAt(commit); }
  std::string Text(const std::string& tree, const std::string& path) {
    return patcher_.Read(tree, path)->value_or("(absent)");
  }

  fs::path folder_;
  GitFixture git_;
  TreePatcher patcher_;
};

TEST_F(TreePatcherTest, RevertsAnOldChangeAndKeepsLaterOnes) {
  git_.Write("lib/a.py", "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\n");
  git_.Write("README", "changed too\n");
  const std::string change = git_.Commit("change", "2026-03-02");
  git_.Write("lib/a.py", "ONE\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n");
  git_.Write("README", "changed again\n");
  const std::string late = git_.Commit("late", "2026-03-03");

  const auto reverted = patcher_.Revert(TreeOf(late), change);

  ASSERT_TRUE(reverted.ok()) << reverted.status();
  EXPECT_THAT(reverted->conflicts, IsEmpty());
  EXPECT_EQ(Text(reverted->tree, "a.py"), "one\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n");
  EXPECT_EQ(Text(reverted->tree, "b.py"), "b = 1\n");
}

TEST_F(TreePatcherTest, FilesWithConflictsAreAsBeforeTheRevertedChange) {
  git_.Write("lib/a.py", "ONE\ntwo\n");
  git_.Write("lib/b.py", "b = 2\n");
  const std::string change = git_.Commit("change", "2026-03-02");
  git_.Write("lib/a.py", "Uno\ntwo\n");
  const std::string late = git_.Commit("late", "2026-03-03");

  const auto reverted = patcher_.Revert(TreeOf(late), change);

  ASSERT_TRUE(reverted.ok()) << reverted.status();
  EXPECT_THAT(reverted->conflicts, ElementsAre("a.py"));
  EXPECT_EQ(Text(reverted->tree, "a.py"), kFirst);
  EXPECT_EQ(Text(reverted->tree, "b.py"), "b = 1\n");
}

TEST_F(TreePatcherTest, FollowsAFileThatWasRenamedSince) {
  git_.Write("lib/a.py", "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\n");
  const std::string change = git_.Commit("change", "2026-03-02");
  git_.Git({"mv", "lib/a.py", "lib/renamed.py"});
  const std::string late = git_.Commit("rename", "2026-03-03");

  const auto reverted = patcher_.Revert(TreeOf(late), change);

  ASSERT_TRUE(reverted.ok()) << reverted.status();
  EXPECT_THAT(reverted->conflicts, IsEmpty());
  EXPECT_EQ(Text(reverted->tree, "renamed.py"), kFirst);
  EXPECT_EQ(Text(reverted->tree, "a.py"), "(absent)");
}

TEST_F(TreePatcherTest, RestoresAFileThatWasRemoved) {
  git_.Git({"rm", "--quiet", "lib/b.py"});
  const std::string change = git_.Commit("remove", "2026-03-02");

  const auto reverted = patcher_.Revert(TreeOf(change), change);

  ASSERT_TRUE(reverted.ok()) << reverted.status();
  EXPECT_EQ(reverted->tree, TreeOf(change + "^1"));
}

TEST_F(TreePatcherTest, WritesIntoItsOwnFolderAndNotIntoTheRepository) {
  const std::string head = git_.Head();
  const std::string before = git_.Git({"count-objects", "-v"});

  const auto tree = patcher_.Write(TreeOf(head), "new/c.py", "c = 3\n");

  ASSERT_TRUE(tree.ok()) << tree.status();
  ASSERT_TRUE(patcher_.Checkout(*tree, folder_ / "out").ok());
  EXPECT_EQ(*ReadFile(folder_ / "out/new/c.py"), "c = 3\n");
  EXPECT_EQ(*ReadFile(folder_ / "out/a.py"), kFirst);
  EXPECT_EQ(git_.Git({"count-objects", "-v"}), before);
  EXPECT_EQ(*patcher_.Write(*tree, "new/c.py", std::nullopt), TreeOf(head));
}

TEST_F(TreePatcherTest, RemovesAFileInABareRepositoryToo) {
  git_.Git({"clone", "--quiet", "--bare", git_.folder().string(), (folder_ / "bare").string()});
  const TreePatcher patcher(GitRepository(folder_ / "bare"), "lib", folder_ / "scratch");

  const auto tree = patcher.Write(TreeOf(git_.Head()), "b.py", std::nullopt);

  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ(Text(*tree, "b.py"), "(absent)");
  EXPECT_EQ(Text(*tree, "a.py"), kFirst);
}

TEST_F(TreePatcherTest, CommitWithoutThePackageIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(patcher_.Revert(TreeOf(git_.Head()), git_.Head()).status()));
}

}  // namespace
}  // namespace bkm
