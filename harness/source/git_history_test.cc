// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/git_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/source/git_fixture.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

//   base - one - - - - - merge - last      (main)
//      \        \       /
//       \        topic -                   (topic)
//        side                              (side)
class GitHistoryTest : public ::testing::Test {
 protected:
  GitHistoryTest()
      : origin_(*CreateTempDirectory(::testing::TempDir(), "git-") / "origin"),
        repository_(origin_.git_dir()) {
    origin_.Write("pkg/a.py", "a = 1\n");
    base_ = origin_.Commit("Start (#1)", "2026-03-01");
    origin_.Write("pkg/b.py", "b = 1\n");
    one_ = origin_.Commit("Add b (#12)", "2026-03-02");
    origin_.Branch("topic", one_);
    origin_.Write("pkg/c.py", "c = 1\n");
    topic_ = origin_.Commit("Add c", "2026-03-03");
    origin_.Checkout("main");
    merge_ = origin_.Merge("topic", "Merge topic", "2026-03-04");
    origin_.Write("pyproject.toml", "[project]\n");
    last_ = origin_.Commit("Revert \"Add b (#12)\" (#34)", "2026-03-05");
    origin_.Branch("side", base_);
    origin_.Write("pkg/b.py", "b = 1\n");
    side_ = origin_.Commit("Pick b", "2026-03-06");
    origin_.Checkout("main");
  }

  static std::vector<std::string> Ids(const GitHistory::Commits& commits) {
    std::vector<std::string> ids;
    for (const HistoryCommit& commit : commits) ids.push_back(commit.id);
    return ids;
  }

  GitFixture origin_;
  GitRepository repository_;
  std::string base_, one_, topic_, merge_, last_, side_;
};

TEST_F(GitHistoryTest, ReadsEveryFieldOfACommit) {
  const GitHistory::Commits commits = *GitHistory::Between(repository_, merge_, last_);
  EXPECT_THAT(commits, ElementsAre(HistoryCommit{.id = merge_,
                                                 .date = "2026-03-04",
                                                 .title = "Merge topic",
                                                 .parents = {one_, topic_},
                                                 .time = 1772625600,
                                                 .before = true},
                                   HistoryCommit{.id = last_,
                                                 .date = "2026-03-05",
                                                 .title = "Revert \"Add b (#12)\" (#34)",
                                                 .parents = {merge_},
                                                 .pull_request = 34,
                                                 .time = 1772712000}));
}

TEST_F(GitHistoryTest, ParentsComeBeforeChildrenOnMergedBranchesToo) {
  EXPECT_THAT(Ids(*GitHistory::Between(repository_, base_, last_)),
              ElementsAre(base_, one_, topic_, merge_, last_));
}

TEST_F(GitHistoryTest, NothingLiesBetweenACommitAndItselfOrItsAncestor) {
  EXPECT_THAT(*GitHistory::Between(repository_, last_, last_), IsEmpty());
  EXPECT_THAT(*GitHistory::Between(repository_, last_, one_), IsEmpty());
}

TEST_F(GitHistoryTest, BranchIsListedWithoutTheCommitsOfTheOtherEnd) {
  const GitHistory::Commits commits = *GitHistory::Between(repository_, last_, side_);
  EXPECT_THAT(Ids(commits), ElementsAre(base_, side_));
  EXPECT_TRUE(commits[0].before);
  EXPECT_EQ(*GitHistory::CommonAncestor(repository_, last_, side_), base_);
}

TEST_F(GitHistoryTest, SinceADayEndsAtTheFirstOlderCommits) {
  EXPECT_THAT(Ids(*GitHistory::Since(repository_, "main", "2026-03-03")),
              UnorderedElementsAre(one_, topic_, merge_, last_));
  EXPECT_TRUE((*GitHistory::Since(repository_, "main", "2026-03-03"))[0].before);
  EXPECT_THAT(Ids(*GitHistory::Since(repository_, "main", "")),
              ElementsAre(base_, one_, topic_, merge_, last_));
}

TEST_F(GitHistoryTest, ShallowHistoryStartsWhereItWasCut) {
  const std::string clone = origin_.folder().string() + "-shallow";
  origin_.Git({"clone", "--quiet", "--bare", "--depth=2", "--branch=main",
               "file://" + origin_.folder().string(), clone});
  const GitRepository shallow(clone);
  EXPECT_THAT(Ids(*GitHistory::Since(shallow, "main", "")), ElementsAre(merge_, last_));
  EXPECT_THAT(std::string(GitHistory::Between(shallow, base_, "main").status().message()),
              HasSubstr("git log in "));
}

TEST_F(GitHistoryTest, MissingCommonAncestorIsAnErrorWithAdvice) {
  origin_.Git({"checkout", "--quiet", "--orphan", "alien"});
  const std::string alien = origin_.Commit("Start over", "2026-03-07");
  EXPECT_THAT(std::string(GitHistory::CommonAncestor(repository_, alien, last_).status().message()),
              HasSubstr("fetch --unshallow"));
}

TEST_F(GitHistoryTest, CommitsThatChangeNoneOfThePathsHaveEqualContent) {
  const GitHistory::Commits commits = *GitHistory::Between(repository_, base_, last_);
  const std::vector<std::string> package = *GitHistory::ContentAt(repository_, commits, {"pkg"});
  ASSERT_EQ(package.size(), 5u);  // base, one, topic, merge, last
  EXPECT_EQ(package[2], package[3]);
  EXPECT_EQ(package[3], package[4]);
  EXPECT_NE(package[0], package[1]);
  EXPECT_NE(package[1], package[2]);
  const std::vector<std::string> both =
      *GitHistory::ContentAt(repository_, commits, {"pkg", "pyproject.toml"});
  EXPECT_EQ(both[3], package[3] + " -");
  EXPECT_NE(both[4], both[3]);
}

TEST_F(GitHistoryTest, CommitsWithTheSameContentOnTwoBranchesAreEqual) {
  const GitHistory::Commits commits = {{.id = one_}, {.id = side_}};
  const std::vector<std::string> contents = *GitHistory::ContentAt(repository_, commits, {"pkg"});
  EXPECT_EQ(contents[0], contents[1]);
}

TEST(PullRequestOfTest, IsTheLastOneThatTheTitleNames) {
  EXPECT_EQ(PullRequestOf("Rename the knob (#1234)"), 1234);
  EXPECT_EQ(PullRequestOf("Revert \"Rename (#1234)\" (#1300)"), 1300);
  EXPECT_EQ(PullRequestOf("[fix] #12: no number"), 0);
  EXPECT_EQ(PullRequestOf("Open (#12"), 0);
  EXPECT_EQ(PullRequestOf("Letters (#12a)"), 0);
  EXPECT_EQ(PullRequestOf(""), 0);
}

}  // namespace
}  // namespace bkm
