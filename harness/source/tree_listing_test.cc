// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/tree_listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

const TreeListing& Some() {
  static const TreeListing listing({{"pkg/sub/c.py", "3"}, {"pkg/sub.py", "2"}, {"pkg/a.py", "1"}});
  return listing;
}

TEST(TreeListingTest, FindsFilesAndFolders) {
  EXPECT_EQ(*Some().Find("pkg/sub.py"), "2");
  EXPECT_EQ(Some().Find("pkg/sub"), nullptr);
  EXPECT_EQ(Some().Find("pkg/z.py"), nullptr);
  EXPECT_TRUE(Some().HasFolder("pkg/sub"));
  EXPECT_TRUE(Some().HasFolder(""));
  EXPECT_FALSE(Some().HasFolder("pkg/su"));
  EXPECT_FALSE(Some().HasFolder("pkg/a.py"));
}

TEST(TreeListingTest, NamesAreThoseRightBelow) {
  EXPECT_THAT(Some().Names("pkg"), ElementsAre("a.py", "sub.py", "sub/"));
  EXPECT_THAT(Some().Names(""), ElementsAre("pkg/"));
  EXPECT_THAT(Some().Names("none"), IsEmpty());
}

TEST(TreeListingTest, StartingWithNamesFilesOfOneFolder) {
  EXPECT_THAT(Some().StartingWith("pkg/sub"), ElementsAre(Pair("pkg/sub.py", "2")));
  EXPECT_THAT(Some().StartingWith("pkg/sub/"), ElementsAre(Pair("pkg/sub/c.py", "3")));
  EXPECT_THAT(Some().StartingWith("pkg/z"), IsEmpty());
}

TEST(TreeListingTest, DigestDiffersWithPathsAndIds) {
  using Files = std::vector<TreeListing::File>;
  const std::string digest = TreeListing(Files{{"a", "1"}, {"b", "2"}}).digest();
  EXPECT_EQ(TreeListing(Files{{"b", "2"}, {"a", "1"}}).digest(), digest);
  EXPECT_NE(TreeListing(Files{{"a", "1"}}).digest(), digest);
  EXPECT_NE(TreeListing(Files{{"a", "1*"}, {"b", "2"}}).digest(), digest);
  EXPECT_NE(TreeListing(Files{{"a", "1"}, {"c", "2"}}).digest(), digest);
}

TEST(TreeListingTest, CompiledFileNamesItsSource) {
  EXPECT_EQ(SourceOfCompiled("a/__pycache__/b.cpython-311.pyc"), "a/b.py");
  EXPECT_EQ(SourceOfCompiled("__pycache__/b.cpython-311.opt-1.pyc"), "b.py");
  EXPECT_EQ(SourceOfCompiled("a/b.pyc"), "");
  EXPECT_EQ(SourceOfCompiled("a/__pycache__/b.py"), "");
  EXPECT_EQ(SourceOfCompiled("a/__pycache__/b/c.x.pyc"), "");
  EXPECT_EQ(SourceOfCompiled("a/not__pycache__/b.x.pyc"), "");
}

TEST(TreeListingTest, KindsAndFilesThatNoSourceExplainsAreTold) {
  namespace fs = std::filesystem;
  const fs::path root = *CreateTempDirectory(::testing::TempDir(), "listing-");
  ASSERT_TRUE(WriteFile(root / "run", "hello\n").ok());
  fs::permissions(root / "run", fs::perms::owner_all);
  fs::create_symlink("hello\n", root / "link");
  fs::create_directories(root / "empty/inside");
  ASSERT_TRUE(WriteFile(root / "shipped.pyc", "hello\n").ok());
  ASSERT_TRUE(WriteFile(root / "__pycache__/shipped.cpython-311.pyc", "hello\n").ok());
  const std::string id = "ce013625030ba8dba906f756967f9e9ca394464a";
  EXPECT_THAT(TreeListing::OfFolder(root)->files(),
              ElementsAre(Pair("__pycache__/shipped.cpython-311.pyc", id), Pair("empty/", "folder"),
                          Pair("empty/inside/", "folder"), Pair("link", id + "@"),
                          Pair("run", id + "*"), Pair("shipped.pyc", id)));
}

TEST(TreeListingTest, FolderIsHashedAsByGitWithoutFilesOfPython) {
  const std::filesystem::path root = *CreateTempDirectory(::testing::TempDir(), "listing-");
  ASSERT_TRUE(WriteFile(root / "pkg/a.py", "hello\n").ok());
  ASSERT_TRUE(WriteFile(root / "pkg/__pycache__/a.cpython-311.pyc", "x").ok());
  // `echo hello | git hash-object --stdin`
  EXPECT_THAT(TreeListing::OfFolder(root)->files(),
              ElementsAre(Pair("pkg/a.py", "ce013625030ba8dba906f756967f9e9ca394464a")));
  EXPECT_FALSE(TreeListing::OfFolder(root / "none").ok());
}

}  // namespace
}  // namespace bkm
