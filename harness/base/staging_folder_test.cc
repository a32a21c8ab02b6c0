// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/staging_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

class StagingFolderTest : public ::testing::Test {
 protected:
  StagingFolder Make() const { return *StagingFolder::Create(parent_, "test"); }

  const fs::path parent_ = *CreateTempDirectory(std::getenv("TEST_TMPDIR"), "staging-");
};

TEST_F(StagingFolderTest, EndsWithItsOwner) {
  fs::path path;
  {
    const StagingFolder folder = Make();
    path = folder.path();
    EXPECT_EQ(path.parent_path(), parent_);
    ASSERT_TRUE(WriteFile(path / "deep/file", "x").ok());
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(StagingFolderTest, WhatWasMovedAwayStays) {
  {
    const StagingFolder folder = Make();
    ASSERT_TRUE(WriteFile(folder.path() / "file", "x").ok());
    fs::rename(folder.path(), parent_ / "done");
  }
  EXPECT_EQ(*ReadFile(parent_ / "done/file"), "x");
}

TEST_F(StagingFolderTest, WhatAKilledProcessLeftIsRemovedByTheNext) {
  const pid_t child = ::fork();
  if (child == 0) {
    const StagingFolder folder = Make();
    (void)WriteFile(folder.path() / "half", "x");
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(std::distance(fs::directory_iterator(parent_), fs::directory_iterator()), 1);

  const StagingFolder next = Make();

  EXPECT_EQ(fs::directory_iterator(parent_)->path(), next.path());
  EXPECT_EQ(std::distance(fs::directory_iterator(parent_), fs::directory_iterator()), 1);
}

TEST_F(StagingFolderTest, FoldersOfLivingOwnersAndOfOthersStay) {
  const StagingFolder living = Make();
  const fs::path elsewhere = *CreateTempDirectory(std::getenv("TEST_TMPDIR"), "elsewhere-");
  ASSERT_TRUE(WriteFile(elsewhere / "kept", "x").ok());
  fs::create_directory_symlink(elsewhere, parent_ / ".bkm-test-linked");
  ASSERT_TRUE(WriteFile(parent_ / ".bkm-test-file", "x").ok());
  ASSERT_TRUE(CreateDirectories(parent_ / ".bkm-other-abcdef").ok());

  const StagingFolder second = Make();

  EXPECT_TRUE(fs::exists(living.path()));
  EXPECT_TRUE(fs::exists(elsewhere / "kept"));
  EXPECT_TRUE(fs::exists(parent_ / ".bkm-test-linked"));
  EXPECT_TRUE(fs::exists(parent_ / ".bkm-test-file"));
  EXPECT_TRUE(fs::exists(parent_ / ".bkm-other-abcdef"));
  EXPECT_NE(living.path(), second.path());
}

}  // namespace
}  // namespace bkm
