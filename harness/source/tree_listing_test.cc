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
