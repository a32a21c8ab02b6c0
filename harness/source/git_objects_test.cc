// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/git_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "harness/base/files.h"
#include "harness/source/git_fixture.h"
#include "harness/source/subject_fault.h"

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
  std::string Id(const std::string& path) {
    return (*objects_->Find(*objects_->TreeOf(commit_), path))->id;
  }
  absl::Status Walk(const std::string& raw_tree) {
    return objects_->Walk(origin_.WriteRaw("tree", raw_tree)).status();
  }

  GitFixture origin_;
  std::string commit_;
  std::unique_ptr<GitObjects> objects_;
};

TEST_F(GitObjectsTest, ContentIsReadToTheByte) {
  EXPECT_EQ((*objects_->Read(Id("pkg/sub/c.py")))->content, std::string("c\0\n", 3));
  EXPECT_EQ((*objects_->Read(Id("pkg/sub.py")))->content, "");
  EXPECT_EQ((*objects_->Read(Id("pkg")))->type, "tree");
}

TEST_F(GitObjectsTest, MissingObjectIsNulloptAndTheNextIsStillRead) {
  EXPECT_EQ(objects_->Find(*objects_->TreeOf(commit_), "pkg/none.py")->has_value(), false);
  EXPECT_EQ(objects_->Find(*objects_->TreeOf(commit_), "pkg/b.py/none.py")->has_value(), false);
  EXPECT_EQ(objects_->Read(std::string(40, '1'))->has_value(), false);
  EXPECT_EQ((*objects_->Read(Id("pkg/b.py")))->content, "b = 1\n");
}

TEST_F(GitObjectsTest, WalkGivesAllFilesBelowInOrder) {
  const std::string tree = Id("pkg");
  std::vector<std::string> paths;
  const std::vector<GitEntry> entries = *objects_->Walk(tree);
  for (const GitEntry& entry : entries) paths.push_back(entry.path);
  EXPECT_THAT(paths, ElementsAre("b.py", "sub.py", "sub/c.py"));
  EXPECT_EQ(entries[0].id, Id("pkg/b.py"));
  EXPECT_EQ(entries[0].mode, "100644");
}

TEST_F(GitObjectsTest, MissingTreeIsAnErrorThatNamesIt) {
  const std::string id(40, '2');
  const absl::Status status = objects_->Walk(id).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(std::string(status.message()).find(id), std::string::npos);
}

TEST_F(GitObjectsTest, HostileTreesAreFaultsAndTheNextObjectIsStillRead) {
  const std::string blob = Id("pkg/b.py"), tree = Id("pkg/sub");
  const auto entry = GitFixture::Entry;
  const std::map<std::string, std::string> hostile = {
      {"dot", entry("40000", ".", tree)},
      {"dots", entry("40000", "..", tree)},
      {"git", entry("40000", ".git", tree)},
      {"git in capitals", entry("40000", ".GIT", tree)},
      {"a file called .git", entry("100644", ".git", blob)},
      {"no name", entry("100644", "", blob)},
      {"slash", entry("100644", "../../evil.py", blob)},
      {"absolute", entry("100644", "/evil.py", blob)},
      {"twice", entry("100644", "a", blob) + entry("100644", "a", blob)},
      {"link and folder", entry("120000", "a", blob) + entry("40000", "a", tree)},
      {"file and folder apart",
       entry("100644", "a", blob) + entry("100644", "a.b", blob) + entry("40000", "a", tree)},
      {"unsorted", entry("100644", "b", blob) + entry("100644", "a", blob)},
      {"folder sorted like a file", entry("40000", "a", tree) + entry("100644", "a.b", blob)},
      {"mode of a device", entry("60000", "a", blob)},
      {"mode with setuid", entry("104755", "a", blob)},
      {"mode of words", entry("word", "a", blob)},
      {"no mode", entry("", "a", blob)},
      {"cut off in the id", entry("100644", "a", blob).substr(0, 20)},
      {"cut off in the name", "100644 a"},
      {"noise", std::string("\0\0\0", 3)},
      {"control character", entry("100644", "a\nb.py", blob)},
      {"not UTF-8", entry("100644", "\xff", blob)},
      {"long name", entry("100644", std::string(5000, 'a'), blob)},
      {"folder that is a file", entry("40000", "a", blob)},
      {"folder that is a commit", entry("40000", "a", commit_)},
      {"missing folder", entry("40000", "a", std::string(40, '3'))},
  };
  for (const auto& [name, content] : hostile) {
    const absl::Status status = Walk(content);
    EXPECT_TRUE(FaultOf(status).has_value()) << name << ": " << status;
    EXPECT_EQ((*objects_->Read(blob))->content, "b = 1\n") << name;
  }
}

TEST_F(GitObjectsTest, OldModesAreReadAsGitReadsThem) {
  const std::string content = GitFixture::Entry("100664", "a", Id("pkg/b.py")) +
                              GitFixture::Entry("040000", "b", Id("pkg/sub"));
  const auto entries = *objects_->Walk(origin_.WriteRaw("tree", content));
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].mode, "100644");
  EXPECT_EQ(entries[1].path, "b/c.py");
}

TEST_F(GitObjectsTest, TreeOfTreesOfTreesIsRefusedBeforeItFillsTheMemory) {
  std::string tree = Id("pkg/sub");
  for (int level = 0; level < 12; ++level) {  // 10^12 files
    std::string content;
    for (int i = 0; i < 10; ++i)
      content += GitFixture::Entry("40000", "d" + std::to_string(i), tree);
    tree = origin_.WriteRaw("tree", content);
  }
  EXPECT_THAT(std::string(objects_->Walk(tree).status().message()), testing::HasSubstr("entries"));
}

TEST_F(GitObjectsTest, DeepTreeIsAFaultAndItsPartsAreStillGood) {
  const std::string inner = Id("pkg");
  std::string tree = inner;
  for (int level = 0; level < 64; ++level)
    tree = origin_.WriteRaw("tree", GitFixture::Entry("40000", "d", tree));
  EXPECT_EQ(FaultOf(objects_->Walk(tree).status()), EndingKind::kTreeNotAllowed);
  EXPECT_EQ(objects_->Walk(inner)->size(), 3u);
}

TEST_F(GitObjectsTest, LongPathsAreFaults) {
  std::string tree = Id("pkg");
  for (int level = 0; level < 6; ++level)
    tree = origin_.WriteRaw("tree", GitFixture::Entry("40000", std::string(200, 'd'), tree));
  EXPECT_EQ(FaultOf(objects_->Walk(tree).status()), EndingKind::kTreeNotAllowed);
}

TEST_F(GitObjectsTest, ManyEntriesAreAFault) {
  const std::string id = Id("pkg/b.py");
  std::string content;
  for (int i = 0; i < 100'001; ++i) {
    const std::string digits = std::to_string(i);
    content += GitFixture::Entry("100644", std::string(6 - digits.size(), '0') + digits, id);
  }
  EXPECT_EQ(FaultOf(Walk(content)), EndingKind::kTreeNotAllowed);
}

TEST_F(GitObjectsTest, WhatIsNoIdIsNeverAskedOfGit) {
  for (const char* name : {"HEAD", "main:pkg", "x\ncontents HEAD", ""})
    EXPECT_FALSE(objects_->Read(name).ok()) << name;
  EXPECT_EQ(FaultOf(objects_->TreeOf(Id("pkg")).status()), EndingKind::kTreeNotAllowed);
  EXPECT_EQ(FaultOf(objects_->TreeOf(origin_.WriteRaw("commit", "tree ../x\n")).status()),
            EndingKind::kTreeNotAllowed);
}

TEST_F(GitObjectsTest, DamagedObjectIsReportedAndGitIsStartedAgain) {
  const std::string id = Id("pkg/b.py");
  const std::filesystem::path file = origin_.git_dir() / "objects" / id.substr(0, 2) / id.substr(2);
  std::filesystem::permissions(file, std::filesystem::perms(0644));
  ASSERT_TRUE(WriteFile(file, "damage").ok());
  EXPECT_FALSE(objects_->Read(id).ok() && objects_->Read(id)->has_value());
  EXPECT_EQ((*objects_->Read(Id("pkg/sub/c.py")))->content, std::string("c\0\n", 3));
}

}  // namespace
}  // namespace bkm
