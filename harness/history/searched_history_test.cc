// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/base/files.h"
#include "harness/history/bisect_report.h"
#include "harness/history/peel_report.h"
#include "harness/history/timeline_report.h"
#include "harness/search/search_world.h"
#include "harness/source/git_fixture.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Reports of searches over six commits of a library, one a day; the fourth breaks it.
class SearchedHistoryTest : public ::testing::Test {
 protected:
  SearchedHistoryTest() {
    GitFixture library(root_ / "l");
    fs::create_directories(root_ / "mirrors");
    fs::create_directory_symlink(library.git_dir(), root_ / "mirrors/lib.git");
    EXPECT_TRUE(catalog_.Add(Json{{"lib", {{"package", "lib"}}}}, "test", "$.sources").ok());
    PlannedCell cell;
    cell.cell.engine = "fixture";
    for (int i = 0; i < 6; ++i) {
      library.Write("lib/a.py", std::to_string(i));
      const std::string title = absl::StrCat("C", i, " (#", 10 + i, ")");
      commits_.push_back(library.Commit(title, absl::StrCat("2026-03-0", 1 + i)));
    }
    cell.cell.library_subject = {SourceKind::kGit, "lib", commits_[5]};
    axis_ =
        *HistoryAxis::Create(cell, AxisKind::kLibrary, {.other = commits_[0]}, sources_, catalog_);
  }
  ~SearchedHistoryTest() override { RemoveTree(root_).IgnoreError(); }

  std::string Line(int commit) const {
    return absl::StrCat("lib ", commits_[commit].substr(0, 9), " (2026-03-0", 1 + commit, ", #",
                        10 + commit, ")");
  }

  const fs::path root_ = *CreateTempDirectory(fs::path(::testing::TempDir()), "reports-");
  SourceCatalog catalog_;
  GitSources sources_{catalog_, root_ / "mirrors", root_ / "clones"};
  std::vector<std::string> commits_;
  HistoryAxis axis_;
};

TEST_F(SearchedHistoryTest, ABisectionNamesTheCulpritBetweenItsParentAndTheNewerEnd) {
  Investigation investigation(axis_.graph(), {.late = 5, .early = 0});
  SearchWorld(Letters("GGGBWW")).Run(investigation);

  const BisectReport report =
      MakeBisectReport(axis_, investigation, Criterion(),
                       [](const std::string&) { return nullptr; }, {6, 6, 5, 4, 2});

  EXPECT_EQ(report.status, SearchStatus::kFound);
  EXPECT_EQ(report.direction, Direction::kBroke);
  EXPECT_EQ(report.made_by, MadeBy::kCommit);
  EXPECT_EQ(report.culprit->id, commits_[3]);
  EXPECT_EQ(report.older_end->id, commits_[0]);
  ASSERT_TRUE(report.confidence.has_value());
  EXPECT_GT(*report.confidence, 0.9);
  EXPECT_LT(*report.confidence, 1);
  EXPECT_EQ(report.cell, axis_.CellAt(5).id);
  EXPECT_EQ(ToSummary(report),
            absl::StrCat(
                "Broken by ", Line(3), " C3 (#13)\n", "  before: ", Line(2), ": ok\n",
                "  after:  ", Line(3), ": broken at import, missing-module: \n",
                "  the newer end differs: ", Line(5),
                ": wrong at golden, log-probs-off: \n"
                "  Another commit caused that: find it with --until "
                "\"reason=log-probs-off\", "
                "or every change with bkm timeline\n",
                absl::StrFormat("  confidence: %.2f %%, if at most 5 %% of all runs end by chance "
                                "as they should not\n",
                                std::floor(1e4 * *report.confidence) / 100),
                "\n5 trials (4 measured now) over 6 commits (6 distinct contents); 2 s\n"));
}

TEST_F(SearchedHistoryTest, ABisectionBetweenCommitsThatCannotBeJudgedListsThem) {
  Investigation investigation(axis_.graph(), {.late = 5, .early = 0});
  SearchWorld(Letters("GGssBB")).Run(investigation);

  const BisectReport report = MakeBisectReport(axis_, investigation, Criterion(),
                                               [](const std::string&) { return nullptr; }, {});

  EXPECT_EQ(report.status, SearchStatus::kAmbiguous);
  EXPECT_EQ(report.culprit, std::nullopt);
  EXPECT_EQ(report.made_by, std::nullopt);
  EXPECT_THAT(ToSummary(report), HasSubstr(absl::StrCat("Candidates:\n  ", Line(2), " C2 (#12)\n  ",
                                                        Line(3), " C3 (#13)\n  ", Line(4))));
}

TEST_F(SearchedHistoryTest, ATimelineHasAChangeBetweenEveryTwoStretches) {
  Timeline timeline(axis_.graph(), {.late = 5, .every = 2});
  SearchWorld(Letters("GGBBsW")).Run(timeline);

  const TimelineReport report = MakeTimelineReport(axis_, timeline, {6, 6, 6, 6, 2});

  ASSERT_EQ(report.stretches.size(), 3u);
  EXPECT_TRUE(report.stretches[0].good());
  ASSERT_EQ(report.boundaries.size(), 2u);
  EXPECT_EQ(report.boundaries[0].change, Change::kBroke);
  EXPECT_EQ(report.boundaries[0].culprit->id, commits_[2]);
  EXPECT_EQ(report.boundaries[1].change, Change::kDifferentlyBad);
  EXPECT_EQ(report.boundaries[1].culprit, std::nullopt);
  EXPECT_EQ(ToSummary(report),
            absl::StrCat("2026-03-01 .. 2026-03-02  good  ok  (2 commits, 2 measured)\n",
                         "  broke by ", Line(2), " C2 (#12)\n",
                         "2026-03-03 .. 2026-03-04  bad   broken at import, missing-module  (2 "
                         "commits, 2 measured)\n    \n",
                         "  differently bad by one of 2 commits up to ", Line(5), " C5 (#15)\n",
                         "2026-03-06 .. 2026-03-06  bad   wrong at golden, log-probs-off  (1 "
                         "commits, 1 measured)\n    \n"
                         "\nEvery commit is measured; 6 trials (6 measured now) over 6 "
                         "commits (6 distinct contents); 2 s\n"));
}

TEST_F(SearchedHistoryTest, APeelingListsCulpritsInTheirOrderAndSaysWhereItStopped) {
  PeelResult result{.reached = 4,
                    .last = PeelSight{.verdict = Broken().verdict,
                                      .frames = {{"e/a.py", "f", 1}, {"e/b.py", "g", 2}}},
                    .why = "more than 2 culprits"};
  result.steps.push_back({.culprit = {.commit = 3},
                          .seen = PeelSight{.verdict = Broken("raised").verdict},
                          .removed_by = Removal::kRevert,
                          .taken_out_at = 4,
                          .built_on_by = 5});
  result.steps.push_back({.culprit = {.candidates = {1, 2}, .why = "no package between"}});

  const PeelReport report = MakePeelReport(axis_, result, "cell", 3, 1);

  EXPECT_EQ(report.last.engine_file, "e/b.py");
  EXPECT_THAT(report.culprits[1].candidates, ElementsAre(axis_.Named(1), axis_.Named(2)));
  EXPECT_EQ(ToSummary(report),
            absl::StrCat("1. ", Line(3), " C3 (#13)\n",
                         "   confirmed by run: broken at import, raised: \n"
                         "   removed by reverting its change\n"
                         "   removable up to ",
                         Line(4), "; the next commit builds on it: ", Line(5), " C5 (#15)\n",
                         "2. one of 2 commits up to ", Line(2), " C2 (#12): no package between\n",
                         "   static only: no run reached it\n",
                         "Without these commits the pair at ", Line(4),
                         " C4 (#14) is broken at import, missing-module\n"
                         "Stopped: more than 2 culprits\n"
                         "\n3 cells measured; 1 s\n"));
}

}  // namespace
}  // namespace bkm
