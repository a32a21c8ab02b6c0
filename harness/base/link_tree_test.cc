// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/link_tree.h"

#include <gtest/gtest.h>

#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

TEST(LinkTreeTest, FilesAreLinkedAndReplaceThoseAtTheTarget) {
  const fs::path root = *CreateTempDirectory(::testing::TempDir(), "link-");
  ASSERT_TRUE(WriteFile(root / "from/a", "new").ok());
  ASSERT_TRUE(WriteFile(root / "from/sub/b", "b").ok());
  ASSERT_TRUE(WriteFile(root / "to/a", "old").ok());
  ASSERT_TRUE(LinkTree(root / "from", root / "to").ok());
  EXPECT_TRUE(fs::equivalent(root / "from/a", root / "to/a"));
  EXPECT_TRUE(fs::equivalent(root / "from/sub/b", root / "to/sub/b"));
}

TEST(LinkTreeTest, FilesAreCopiedToAnotherFileSystem) {
  // /dev/shm is not on the file system of the test's folder.
  const fs::path there = *CreateTempDirectory("/dev/shm", "bkm-link-");
  const fs::path root = *CreateTempDirectory(::testing::TempDir(), "link-");
  ASSERT_TRUE(WriteFile(root / "a", "text").ok());
  EXPECT_TRUE(LinkFile(root / "a", there / "a").ok());
  EXPECT_EQ(*ReadFile(there / "a"), "text");
  EXPECT_FALSE(fs::equivalent(root / "a", there / "a"));
  EXPECT_TRUE(RemoveTree(there).ok());
}

TEST(LinkTreeTest, MissingSourceIsFineAndAnUnwritableTargetIsNamed) {
  const fs::path root = *CreateTempDirectory(::testing::TempDir(), "link-");
  EXPECT_TRUE(LinkTree(root / "none", root / "to").ok());
  EXPECT_FALSE(fs::exists(root / "to"));
  ASSERT_TRUE(WriteFile(root / "a", "text").ok());
  const absl::Status status = LinkFile(root / "a", root / "no/folder");
  EXPECT_NE(std::string(status.message()).find((root / "no/folder").string()), std::string::npos);
}

}  // namespace
}  // namespace bkm
