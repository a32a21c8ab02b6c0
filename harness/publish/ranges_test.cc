// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/publish/rows.h"
#include "harness/publish/testing_runs.h"
#include "harness/source/git_fixture.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(VersionLessTest, NumbersCountAsNumbers) {
  EXPECT_TRUE(VersionLess("1.9", "1.10"));
  EXPECT_FALSE(VersionLess("1.10", "1.9"));
  EXPECT_TRUE(VersionLess("0.2", "0.2.1"));
  EXPECT_FALSE(VersionLess("0.2.1", "0.2.1"));
  EXPECT_TRUE(VersionLess("5.09", "5.10"));
}

TEST(IsSameReleaseTest, LocalVersionsAndTrailingZerosDoNotCount) {
  EXPECT_TRUE(IsSameRelease("2.13.0", "2.13.0"));
  EXPECT_TRUE(IsSameRelease("2.13.0+cpu", "2.13.0"));
  EXPECT_TRUE(IsSameRelease("2.13", "2.13.0+cu130"));
  EXPECT_FALSE(IsSameRelease("2.1", "2.13.0"));
  EXPECT_FALSE(IsSameRelease("2.13.0", "2.1"));
  EXPECT_FALSE(IsSameRelease("2.13.0", "2.13.0rc1"));
  EXPECT_FALSE(IsSameRelease("2.13.0", ""));
}

// A repository of torchtitan: a change of the package, of a document, of the package again.
class RangesTest : public ::testing::Test {
 protected:
  RangesTest()
      : folder_(*CreateTempDirectory(::testing::TempDir(), "mirrors")),
        repository_(folder_ / "work"),
        sources_(catalog_, folder_, folder_ / "clones"),
        history_(catalog_, sources_,
                 [this](const std::string& package, const std::string& version) {
                   return ReleaseBefore(package, version);
                 }) {
    fs::create_directory_symlink(repository_.git_dir(), folder_ / "torchtitan.git");
    for (const char* change : {"one", "two", "document", "three"}) {
      repository_.Write(change == std::string("document") ? "README.md" : "torchtitan/a.py",
                        change);
      commits_[change] = repository_.Commit(change, "2026-06-01");
    }
  }

  absl::StatusOr<std::string> ReleaseBefore(const std::string&, const std::string& version) {
    if (!registry_.ok()) return registry_;
    const std::map<std::string, std::string> before = {
        {"0.2.1", "0.2.0"}, {"0.2.2", "0.2.1"}, {"0.10.0", "0.2.2"}};
    const auto it = before.find(version);
    return it == before.end() ? "" : it->second;
  }

  CellRecord AtLibrary(const SubjectSpec& library, const std::string& label, Verdict verdict) {
    CellRecord record = ARecord("flex", std::move(verdict));
    record.cell.library_subject = library;
    record.cell.library_label = label;
    record.id = CellId(record.cell);
    return record;
  }
  CellRecord AtCommit(const std::string& change, Verdict verdict) {
    return AtLibrary({SourceKind::kGit, "torchtitan", commits_.at(change)}, change,
                     std::move(verdict));
  }
  CellRecord AtRelease(const std::string& version, Verdict verdict) {
    return AtLibrary({SourceKind::kPypi, "torchtitan", version}, version, std::move(verdict));
  }

  // "one..three (3) works" for each row.
  std::vector<std::string> Ranges(std::vector<CellRecord> cells) {
    const std::vector<RunEvidence> runs = {ARun("run", std::move(cells))};
    rows_ = JoinRanges(RowsOf(Merge(runs), 30), history_);
    std::vector<std::string> texts;
    for (const PublishedRow& row : rows_) {
      texts.push_back(absl::StrCat(row.library_from.label, "..", row.library_to.label, " (",
                                   row.library_versions.size(), ") ", Name(row.status)));
    }
    return texts;
  }

  const fs::path folder_;
  GitFixture repository_;
  std::map<std::string, std::string> commits_;
  absl::Status registry_;
  SourceCatalog catalog_;
  GitSources sources_;
  VersionHistory history_;
  std::vector<PublishedRow> rows_;
};

TEST_F(RangesTest, NeighboursThatCameToTheSameAreARange) {
  EXPECT_THAT(Ranges({AtCommit("two", Ok()), AtCommit("one", Ok())}),
              ElementsAre("one..two (2) works"));
  EXPECT_EQ(rows_[0].cells[0].library, rows_[0].library_to.subject) << "newest first";
  EXPECT_EQ(rows_[0].cells.size(), 2u);
}

TEST_F(RangesTest, ACommitThatNobodyRanEndsARange) {
  EXPECT_THAT(Ranges({AtCommit("one", Ok()), AtCommit("three", Ok())}),
              ElementsAre("one..one (1) works", "three..three (1) works"));
}

TEST_F(RangesTest, ACommitThatChangesNothingThatCountsNeedsNoRun) {
  EXPECT_THAT(Ranges({AtCommit("two", Ok()), AtCommit("three", Ok())}),
              ElementsAre("two..three (2) works"));
}

TEST_F(RangesTest, AnotherVerdictEndsARange) {
  EXPECT_THAT(Ranges({AtCommit("one", Ok()), AtCommit("two", Broken()), AtCommit("three", Ok())}),
              ElementsAre("one..one (1) works", "two..two (1) fails", "three..three (1) works"));
}

TEST_F(RangesTest, RedVersionsJoinOnlyForOneReason) {
  EXPECT_THAT(Ranges({AtCommit("one", Broken("no 'X' (a.py:1)")),
                      AtCommit("two", Broken("no 'X' (b.py:2)")),
                      AtCommit("three", Broken("no 'Y' (a.py:1)"))}),
              ElementsAre("one..two (2) fails", "three..three (1) fails"));
}

TEST_F(RangesTest, FlakyVersionsStandAlone) {
  const auto flaky = [](CellRecord record) {
    record.stability = Stability{.runs = 2, .verdicts = {{"ok", 1}, {"wrong", 1}}};
    return record;
  };
  EXPECT_THAT(Ranges({flaky(AtCommit("one", Ok())), flaky(AtCommit("two", Ok()))}),
              ElementsAre("one..one (1) fails", "two..two (1) fails"));
}

TEST_F(RangesTest, CommitsOfTwoBranchesAreNoRange) {
  repository_.Branch("side", commits_["one"]);
  repository_.Write("torchtitan/b.py", "side");
  commits_["side"] = repository_.Commit("side", "2026-06-02");
  EXPECT_THAT(Ranges({AtCommit("two", Ok()), AtCommit("side", Ok())}), testing::SizeIs(2));
}

TEST_F(RangesTest, ReleasesJoinWhereTheRegistryHasNoneBetween) {
  EXPECT_THAT(Ranges({AtRelease("0.10.0", Ok()), AtRelease("0.2.2", Ok())}),
              ElementsAre("0.2.2..0.10.0 (2) works"));
  EXPECT_THAT(Ranges({AtRelease("0.10.0", Ok()), AtRelease("0.2.1", Ok())}),
              ElementsAre("0.2.1..0.2.1 (1) works", "0.10.0..0.10.0 (1) works"));
}

TEST_F(RangesTest, ReleasesAndCommitsAreNoRange) {
  EXPECT_THAT(Ranges({AtRelease("0.2.1", Ok()), AtCommit("one", Ok())}), testing::SizeIs(2));
}

TEST_F(RangesTest, WhereNobodyCanBeAskedThereIsNoRangeAndANote) {
  registry_ = absl::UnavailableError("no network");
  EXPECT_THAT(Ranges({AtRelease("0.2.1", Ok()), AtRelease("0.2.2", Ok())}), testing::SizeIs(2));
  EXPECT_THAT(history_.troubles(), ElementsAre("no ranges of torchtitan: no network"));
  GitSources nowhere(catalog_, folder_ / "none", "/dev/null/clones");
  VersionHistory blind(catalog_, nowhere, [](const auto&, const auto&) { return std::string(); });
  EXPECT_FALSE(blind.Follows({SourceKind::kGit, "torchtitan", commits_["one"]},
                             {SourceKind::kGit, "torchtitan", commits_["two"]}));
  EXPECT_THAT(blind.troubles(), ElementsAre(HasSubstr("no ranges of torchtitan")));
}

}  // namespace
}  // namespace bkm
