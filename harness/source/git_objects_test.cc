// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/git_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/source/git_fixture.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;

class GitObjectsTest : public ::testing::Test {
 protected:
  GitObjectsTest() : origin_(*CreateTempDirectory(::testing::TempDir(), "objects-")) {
    origin_.Write("pkg/b.py", "b = 1\n");
    origin_.Write("pkg/sub/c.py", std::string("c\0\n", 3));
    origin_.Write("pkg/sub.py", "");
    commit_ = origin_.Commit("Begin", "2026-03-05");
    objects_ = *GitObjects::Open(GitRepository(origin_.git_dir()));
  }
  GitFixture origin_;
  std::string commit_;
  std::unique_ptr<GitObjects> objects_;
};

TEST_F(GitObjectsTest, ContentIsReadToTheByte) {
  EXPECT_EQ((*objects_->Read(commit_ + ":pkg/sub/c.py"))->content, std::string("c\0\n", 3));
  EXPECT_EQ((*objects_->Read(commit_ + ":pkg/sub.py"))->content, "");
  EXPECT_EQ((*objects_->Read(commit_ + ":pkg"))->type, "tree");
}

TEST_F(GitObjectsTest, MissingObjectIsNulloptAndTheNextIsStillRead) {
  EXPECT_EQ(objects_->Read(commit_ + ":pkg/none.py")->has_value(), false);
  EXPECT_EQ(objects_->Read(std::string(40, '1'))->has_value(), false);
  EXPECT_EQ((*objects_->Read(commit_ + ":pkg/b.py"))->content, "b = 1\n");
}

TEST_F(GitObjectsTest, WalkGivesAllFilesBelowInOrder) {
  const std::string tree = (*objects_->Read(commit_ + ":pkg"))->id;
  std::vector<std::string> paths;
  const std::vector<GitEntry> entries = *objects_->Walk(tree);
  for (const GitEntry& entry : entries) paths.push_back(entry.path);
  EXPECT_THAT(paths, ElementsAre("b.py", "sub.py", "sub/c.py"));
  EXPECT_EQ(entries[0].id, (*objects_->Read(commit_ + ":pkg/b.py"))->id);
  EXPECT_EQ(entries[0].mode, "100644");
}

TEST_F(GitObjectsTest, MissingTreeIsAnErrorThatNamesIt) {
  const std::string id(40, '2');
  const absl::Status status = objects_->Walk(id).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(std::string(status.message()).find(id), std::string::npos);
}

}  // namespace
}  // namespace bkm
