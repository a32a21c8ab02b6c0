// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/git_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/source/git_fixture.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class GitSourcesTest : public ::testing::Test {
 protected:
  GitSourcesTest()
      : root_(*CreateTempDirectory(::testing::TempDir(), "git-")), origin_(root_ / "origin") {
    origin_.Write("pkg/__init__.py", "one = 1\n");
    first_ = origin_.Commit("Add one", "2026-03-05");
    origin_.Git({"tag", "v1"});
    origin_.Write("pkg/__init__.py", "two = 2\n");
    second_ = origin_.Commit("Add two", "2026-04-06");
    EXPECT_TRUE(catalog_
                    .Add(Json{{"pkg", {{"git", "file://" + origin_.folder().string()}}}}, "m.json",
                         "$.sources")
                    .ok());
  }
  // Makes mirrors/pkg.git a mirror of origin_.
  fs::path Mirror() {
    fs::create_directories(root_ / "mirrors");
    origin_.Git({"clone", "--quiet", "--mirror", origin_.folder().string(),
                 (root_ / "mirrors" / "pkg.git").string()});
    return root_ / "mirrors";
  }
  std::string ErrorOfFind(GitSources& sources, const char* revision) {
    return std::string(sources.Find("pkg", revision).status().message());
  }

  fs::path root_;
  GitFixture origin_;
  SourceCatalog catalog_;
  std::string first_, second_;
};

TEST_F(GitSourcesTest, MirrorResolvesEveryFormOfRevision) {
  GitSources sources(catalog_, Mirror(), root_ / "clones");
  EXPECT_EQ(sources.Find("pkg", "v1")->commit, first_);
  EXPECT_EQ(sources.Find("pkg", "main")->commit, second_);
  EXPECT_EQ(sources.Find("pkg", "main~1")->commit, first_);
  EXPECT_EQ(sources.Find("pkg", first_.substr(0, 9))->commit, first_);
  EXPECT_EQ(sources.Find("pkg", second_)->commit, second_);
  EXPECT_FALSE(fs::exists(root_ / "clones"));
}

TEST_F(GitSourcesTest, UnknownRevisionInAMirrorIsAnErrorWithSuggestionAndAdvice) {
  const fs::path mirrors = Mirror();
  GitSources sources(catalog_, mirrors, root_ / "clones");
  EXPECT_EQ(ErrorOfFind(sources, "v2"),
            "git:pkg@v2: no such revision in " + (mirrors / "pkg.git").string() +
                ": did you mean 'v1'? (if it is new or older than a shallow mirror: git -C " +
                (mirrors / "pkg.git").string() + " fetch file://" + origin_.folder().string() +
                " REVISION)");
  EXPECT_THAT(ErrorOfFind(sources, "0123456789012345678901234567890123456789"),
              HasSubstr("no such revision in"));
}

TEST_F(GitSourcesTest, UnknownSourceIsNamed) {
  GitSources sources(catalog_, {}, root_ / "clones");
  EXPECT_EQ(sources.Find("torchtitn", "main").status().message(),
            "unknown git source 'torchtitn': did you mean 'torchtitan'?; a matrix adds one under "
            "\"sources\"");
  EXPECT_THAT(std::string(sources.Find("transformers", "main").status().message()),
              HasSubstr("only known on PyPI"));
}

TEST_F(GitSourcesTest, WithoutMirrorTheUrlIsClonedWithoutFileContents) {
  GitSources sources(catalog_, {}, root_ / "clones");
  const GitSources::Found found = *sources.Find("pkg", "v1");
  EXPECT_EQ(found.commit, first_);
  EXPECT_EQ(found.repository.folder().parent_path(), root_ / "clones");
  const std::string object = first_ + ":pkg/__init__.py";
  const auto left_behind = [&] {
    return found.repository.Output({"rev-list", "--objects", "--missing=print", first_})
               ->find("?") != std::string::npos;
  };
  EXPECT_TRUE(left_behind());
  ASSERT_EQ(found.repository.Prefetch({first_}, {"pkg"}), absl::OkStatus());
  EXPECT_FALSE(left_behind());
  EXPECT_EQ(*found.repository.Output({"show", object}), "one = 1\n");
}

TEST_F(GitSourcesTest, ACommitIsDescribedWithoutItsFiles) {
  fs::remove(origin_.folder() / "pkg/__init__.py");
  // A rename, which git can detect only by the files' contents.
  origin_.Write("pkg/other.py", "two = 2\nthree = 3\n");
  const std::string third = origin_.Commit("Move two", "2026-05-07");
  origin_.Git({"clone", "--quiet", "--mirror", "--filter=blob:none",
               "file://" + origin_.folder().string(), (root_ / "mirrors/pkg.git").string()});
  fs::remove_all(origin_.folder());  // nowhere to fetch them from
  GitSources sources(catalog_, root_ / "mirrors", root_ / "clones");
  const GitSources::Found found = *sources.Find("pkg", third);
  const absl::StatusOr<Commit> commit = found.repository.Describe(third);
  ASSERT_TRUE(commit.ok()) << commit.status();
  EXPECT_EQ(commit->title, "Move two");
}

TEST_F(GitSourcesTest, BranchIsFetchedAgainAndTagIsNot) {
  {
    GitSources sources(catalog_, {}, root_ / "clones");
    ASSERT_EQ(sources.Find("pkg", "main")->commit, second_);
  }
  origin_.Write("pkg/__init__.py", "three = 3\n");
  const std::string third = origin_.Commit("Add three", "2026-05-07");
  {
    GitSources sources(catalog_, {}, root_ / "clones");
    EXPECT_EQ(sources.Find("pkg", "main")->commit, third);
  }
  fs::rename(origin_.folder(), root_ / "gone");
  GitSources offline(catalog_, {}, root_ / "clones");
  EXPECT_EQ(offline.Find("pkg", "v1")->commit, first_);
  EXPECT_EQ(offline.Find("pkg", third)->commit, third);
  EXPECT_THAT(ErrorOfFind(offline, "main"),
              AllOf(StartsWith("cannot fetch pkg from file://"),
                    HasSubstr("give a commit id or tag that was fetched before")));
}

TEST_F(GitSourcesTest, CommitOnNoBranchIsFetchedByItsFullId) {
  GitSources sources(catalog_, {}, root_ / "clones");
  ASSERT_TRUE(sources.Find("pkg", "v1").ok());
  origin_.Git({"checkout", "--quiet", "--detach"});
  origin_.Write("pkg/new.py", "");
  const std::string loose = origin_.Commit("Propose", "2026-05-08");
  EXPECT_EQ(sources.Find("pkg", loose)->commit, loose);
}

TEST_F(GitSourcesTest, UnreachableUrlIsOneSentenceWithAdvice) {
  fs::rename(origin_.folder(), root_ / "gone");
  GitSources sources(catalog_, {}, root_ / "clones");
  EXPECT_THAT(ErrorOfFind(sources, "v1"),
              AllOf(StartsWith("cannot clone pkg from file://"), HasSubstr("--git-mirror"),
                    ::testing::Not(HasSubstr("\n"))));
}

}  // namespace
}  // namespace bkm
