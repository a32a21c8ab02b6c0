// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/search/history_axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/source/git_fixture.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two repositories whose commits alternate by day: engine on odd days, library on even ones.
class HistoryAxisTest : public ::testing::Test {
 protected:
  HistoryAxisTest()
      : root_(*CreateTempDirectory(::testing::TempDir(), "axis-")),
        engine_(root_ / "e"),
        library_(root_ / "l"),
        sources_(catalog_, root_ / "mirrors", root_ / "clones") {
    fs::create_directories(root_ / "mirrors");
    fs::create_directory_symlink(engine_.git_dir(), root_ / "mirrors/eng.git");
    fs::create_directory_symlink(library_.git_dir(), root_ / "mirrors/lib.git");
    EXPECT_TRUE(catalog_
                    .Add(Json{{"eng", {{"package", "eng"}}}, {"lib", {{"package", "lib_pkg"}}}},
                         "test", "$.sources")
                    .ok());
    for (int i = 0; i < 3; ++i) {
      engine_.Write("eng/a.py", std::to_string(i));
      engines_.push_back(engine_.Commit("E" + std::to_string(i), Day(1 + 2 * i)));
      library_.Write("lib_pkg/a.py", std::to_string(i));
      libraries_.push_back(library_.Commit("L" + std::to_string(i) + " (#7)", Day(2 + 2 * i)));
    }
    cell_.cell.engine = "fixture";
    cell_.cell.engine_subject = {SourceKind::kGit, "eng", engines_[2]};
    cell_.cell.library_subject = {SourceKind::kGit, "lib", libraries_[2]};
  }
  static std::string Day(int day) { return "2026-03-0" + std::to_string(day); }
  absl::StatusOr<HistoryAxis> Make(AxisKind kind, const AxisEnds& ends) {
    return HistoryAxis::Create(cell_, kind, ends, sources_, catalog_);
  }
  static std::vector<std::string> Titles(const HistoryAxis& axis) {
    std::vector<std::string> titles;
    for (int i = 0; i < axis.graph().size(); ++i) titles.push_back(axis.CommitAt(i).title);
    return titles;
  }

  fs::path root_;
  GitFixture engine_, library_;
  SourceCatalog catalog_;
  GitSources sources_;
  std::vector<std::string> engines_, libraries_;
  PlannedCell cell_;
};

TEST_F(HistoryAxisTest, LibraryAxisMovesTheLibraryAlone) {
  const HistoryAxis axis = *Make(AxisKind::kLibrary, {.other = libraries_[0]});
  EXPECT_THAT(Titles(axis), ElementsAre("L0 (#7)", "L1 (#7)", "L2 (#7)"));
  EXPECT_EQ(axis.early(), 0);
  EXPECT_TRUE(axis.one_is_late());
  const Cell cell = axis.CellAt(1).cell;
  EXPECT_EQ(cell.engine_subject->revision, engines_[2]);
  EXPECT_EQ(cell.library_subject->revision, libraries_[1]);
  EXPECT_EQ(axis.CellAt(1).id, CellId(cell));
  EXPECT_EQ(axis.Describe(1), "lib " + libraries_[1].substr(0, 9) + " (2026-03-04, #7) L1 (#7)");
}

TEST_F(HistoryAxisTest, AnEndThatLiesBeforeTheOtherIsTheOlderOneHoweverTheyAreNamed) {
  const HistoryAxis axis = *Make(AxisKind::kEngine, {.one = engines_[0], .other = engines_[2]});
  EXPECT_THAT(Titles(axis), ElementsAre("E0", "E1", "E2"));
  EXPECT_FALSE(axis.one_is_late());
}

TEST_F(HistoryAxisTest, WithOneEndItGoesBackToTheBeginningOrADay) {
  EXPECT_THAT(Titles(*Make(AxisKind::kEngine, {})), ElementsAre("E0", "E1", "E2"));
  const HistoryAxis axis = *Make(AxisKind::kEngine, {.since = "2026-03-05"});
  EXPECT_THAT(Titles(axis), ElementsAre("E1", "E2"));
  EXPECT_EQ(axis.early(), std::nullopt);
}

TEST_F(HistoryAxisTest, BothAtOnceAreALineOfMoments) {
  const HistoryAxis axis = *Make(AxisKind::kBoth, {.other = engines_[0] + "," + libraries_[0]});
  EXPECT_THAT(Titles(axis), ElementsAre("L0 (#7)", "E1", "L1 (#7)", "E2", "L2 (#7)"));
  const Cell cell = axis.CellAt(1).cell;
  EXPECT_EQ(cell.engine_subject->revision, engines_[1]);
  EXPECT_EQ(cell.library_subject->revision, libraries_[0]);
  EXPECT_EQ(axis.SourceAt(1), "eng");
  EXPECT_EQ(axis.SourceAt(2), "lib");
}

TEST_F(HistoryAxisTest, ABranchStartsWhereItParts) {
  library_.Branch("release", libraries_[0]);
  library_.Write("lib_pkg/b.py", "");
  const std::string release = library_.Commit("Release", "2026-03-03");
  const HistoryAxis axis = *Make(AxisKind::kLibrary, {.other = release});
  EXPECT_THAT(Titles(axis), ElementsAre("L0 (#7)", "L1 (#7)", "L2 (#7)"));
  EXPECT_EQ(axis.note(),
            release.substr(0, 9) + " is not an ancestor of " + libraries_[2].substr(0, 9) +
                ": the search starts at their merge base, " + libraries_[0].substr(0, 9));
}

TEST_F(HistoryAxisTest, CommitsThatDoNotTouchThePackageHaveEqualContent) {
  library_.Write("docs/a.md", "new");
  cell_.cell.library_subject->revision = library_.Commit("Document", "2026-03-08");
  const HistoryAxis axis = *Make(AxisKind::kLibrary, {.other = libraries_[0]});
  const CommitGraph& graph = axis.graph();
  EXPECT_EQ(graph.size(), 4);
  EXPECT_EQ(graph.content(3), graph.content(2));
  library_.Write("pyproject.toml", "[project]\n");
  cell_.cell.library_subject->revision = library_.Commit("Declare", "2026-03-09");
  EXPECT_EQ(Make(AxisKind::kLibrary, {.other = libraries_[0]})->graph().contents(), 4);
}

TEST_F(HistoryAxisTest, MistakesSayWhatToDo) {
  EXPECT_THAT(std::string(Make(AxisKind::kBoth, {.other = "x"}).status().message()),
              HasSubstr("with --axis both an end is ENGINE_REVISION,LIBRARY_REVISION"));
  cell_.cell.library_subject = {SourceKind::kPypi, "lib", "1.0"};
  EXPECT_EQ(Make(AxisKind::kLibrary, {}).status().message(),
            "pypi:lib==1.0 has no commits to search: name a revision, as git:lib@main");
  cell_.cell.engine_subject.reset();
  EXPECT_EQ(Make(AxisKind::kEngine, {}).status().message(),
            "the cell has no engine of its own to search: name it with --engine "
            "KIND@git:NAME@REV");
}

}  // namespace
}  // namespace bkm
