// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/search/peel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kNewest = 20;

// A break that a commit introduced, at a line of the engine's constructor.
struct BrokenLine {
  int commit;
  int line;
  bool by_sources = false;
  std::set<Removal> removable = {Removal::kRevert};
  bool library_dies = false;  // after the removal
  int until = kNewest;        // later commits build on it
  int met = kNewest;          // changes of later commits meet its own
  bool in_library = false;    // what fails is the library's own code
};

Violation BreakAt(int line) {
  return {.engine_file = "e.py", .engine_line = line, .asked = absl::StrCat("lib.f", line)};
}

// An engine whose constructor fails at its first broken line. Commits are a line from 0 to kNewest.
class FakeWorld : public PeelWorld {
 public:
  explicit FakeWorld(std::vector<BrokenLine> broken) : broken_(std::move(broken)) {}

  int newest() const override { return kNewest; }
  void MoveTo(int commit) override { at_ = commit; }
  std::vector<int> Since(int commit) override {
    std::vector<int> since;
    for (int c = commit; c <= kNewest; ++c) since.push_back(c);
    return since;
  }
  absl::StatusOr<PeelSight> Run(const std::vector<Removed>& removed) override {
    ++runs_;
    for (const Removed& r : removed) {
      if (!Applies(r, removed)) return absl::NotFoundError("conflicts in f.py");
    }
    for (const BrokenLine& b : Left(removed)) {
      return PeelSight{{.kind = VerdictKind::kBroken, .stage = Stage::kConstruct},
                       absl::StrCat("Error: ", b.line),
                       {{"e.py", "__init__", b.line}},
                       b.in_library};
    }
    return PeelSight{{.kind = VerdictKind::kOk, .stage = Stage::kGolden}, "", {}};
  }
  absl::StatusOr<std::optional<bool>> LibraryRuns(const std::vector<Removed>& removed) override {
    return std::none_of(removed.begin(), removed.end(), [&](const Removed& r) {
      return std::any_of(broken_.begin(), broken_.end(), [&](const BrokenLine& b) {
        return b.commit == r.commit && b.library_dies && r.by != Removal::kStub;
      });
    });
  }
  absl::StatusOr<std::vector<Violation>> Breaks(const std::vector<Removed>& removed) override {
    std::vector<Violation> breaks;
    for (const BrokenLine& b : Left(removed)) {
      if (b.by_sources) breaks.push_back(BreakAt(b.line));
    }
    return breaks;
  }
  absl::StatusOr<PeelCulprit> FindBySources(const Violation& broken) override {
    return PeelCulprit{.commit = AtLine(broken.engine_line).commit};
  }
  absl::StatusOr<PeelCulprit> FindByRuns(const PeelSight& failure,
                                         const std::vector<Removed>&) override {
    ++searches_;
    return PeelCulprit{.commit = AtLine(static_cast<int>(failure.frames.back().line)).commit};
  }
  int searches() const { return searches_; }
  int runs() const { return runs_; }
  int at() const { return at_; }

 private:
  // A commit that builds on a culprit comes right after the culprit's last one, and is reverted
  // first.
  bool Applies(const Removed& r, const std::vector<Removed>& removed) const {
    const auto broken = std::find_if(broken_.begin(), broken_.end(),
                                     [&](const BrokenLine& b) { return b.commit == r.commit; });
    const bool reverts = r.by == Removal::kRevert || r.by == Removal::kOlderFiles;
    if (broken == broken_.end()) return reverts;  // it only builds on one
    if (r.by == Removal::kRevert && at_ > broken->met) return false;
    const bool freed = std::any_of(removed.begin(), removed.end(), [&](const Removed& other) {
      return other.commit == broken->until + 1;
    });
    const bool can = broken->removable.contains(r.by) ||
                     (reverts && broken->removable.contains(Removal::kRevert));
    return can && (at_ <= broken->until || freed);
  }
  std::vector<BrokenLine> Left(const std::vector<Removed>& removed) const {
    std::vector<BrokenLine> left;
    for (const BrokenLine& b : broken_) {
      if (b.commit <= at_ && std::none_of(removed.begin(), removed.end(),
                                          [&](const Removed& r) { return r.commit == b.commit; }))
        left.push_back(b);
    }
    std::sort(left.begin(), left.end(), [](auto& a, auto& b) { return a.line < b.line; });
    return left;
  }
  const BrokenLine& AtLine(int line) const {
    return *std::find_if(broken_.begin(), broken_.end(), [&](auto& b) { return b.line == line; });
  }
  const std::vector<BrokenLine> broken_;
  int at_ = kNewest;
  int searches_ = 0;
  int runs_ = 0;
};

// "7 revert" for a culprit seen by a run, "7 static" for one that was not, "7 stays" for the last.
std::vector<std::string> Lines(const PeelResult& result) {
  std::vector<std::string> lines;
  for (const PeelStep& step : result.steps) {
    lines.push_back(absl::StrCat(step.culprit.commit, " ",
                                 step.builds_on >= 0 ? absl::StrCat("with ", step.builds_on)
                                 : !step.seen        ? "static"
                                 : step.removed_by   ? Name(*step.removed_by)
                                                     : "stays"));
    if (step.taken_out_at >= 0)
      absl::StrAppend(&lines.back(), " up to ", step.taken_out_at, ", not ", step.built_on_by);
  }
  return lines;
}

TEST(PeelTest, ListsStackedCulpritsInTheOrderInWhichThePairMeetsThem) {
  FakeWorld world(
      {{.commit = 4, .line = 30}, {.commit = 9, .line = 10}, {.commit = 7, .line = 20}});

  const auto result = Peel(world, 10);

  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Lines(*result), ElementsAre("9 revert", "7 revert", "4 revert"));
  EXPECT_TRUE(result->works);
  EXPECT_THAT(result->why, IsEmpty());
}

TEST(PeelTest, StopsAtACulpritThatCannotBeTakenOutAndTellsTheStaticOnesBehindIt) {
  FakeWorld world({{.commit = 9, .line = 10, .by_sources = true},
                   {.commit = 7, .line = 20, .removable = {}},
                   {.commit = 4, .line = 30, .by_sources = true}});

  const auto result = Peel(world, 10);

  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Lines(*result), ElementsAre("9 revert", "7 stays", "4 static"));
  EXPECT_FALSE(result->works);
  EXPECT_THAT(result->why, HasSubstr("cannot be removed"));
  EXPECT_THAT(result->steps[1].note, HasSubstr("revert: conflicts in f.py"));
  EXPECT_EQ(world.searches(), 1) << "what the sources say needs no search by runs";
}

TEST(PeelTest, TakesTheNextWayWhereTheMostFaithfulDoesNotApply) {
  FakeWorld world({{.commit = 9,
                    .line = 10,
                    .by_sources = true,
                    .removable = {Removal::kOlderModules, Removal::kStub}},
                   {.commit = 3, .line = 20, .by_sources = true}});

  const auto result = Peel(world, 10);

  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Lines(*result), ElementsAre("9 older-modules", "3 revert"));
}

TEST(PeelTest, PrefersTheWayThatLeavesTheLibraryRunning) {
  FakeWorld world({{.commit = 9,
                    .line = 10,
                    .by_sources = true,
                    .removable = {Removal::kOlderFiles, Removal::kStub},
                    .library_dies = true}});

  const auto result = Peel(world, 10);

  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Lines(*result), ElementsAre("9 stand-in"));
  EXPECT_EQ(result->steps[0].library_runs, true);
}

TEST(PeelTest, DoesNotGoOnWithALibraryThatNoLongerRuns) {
  FakeWorld world({{.commit = 9, .line = 10, .library_dies = true}, {.commit = 5, .line = 20}});

  const auto result = Peel(world, 10);

  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Lines(*result), ElementsAre("9 stays"));
  EXPECT_THAT(result->steps[0].note, HasSubstr("revert: the library alone no longer runs"));
}

TEST(PeelTest, OneCommitThatBrokeSeveralThingsIsOneCulprit) {
  FakeWorld world({{.commit = 9, .line = 10, .by_sources = true},
                   {.commit = 9, .line = 20, .by_sources = true}});

  const auto result = Peel(world, 10);

  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Lines(*result), ElementsAre("9 revert"));
  EXPECT_THAT(result->steps[0].breaks, ElementsAre(BreakAt(10), BreakAt(20)));
}

TEST(PeelTest, WhereLaterCommitsBuildOnACulpritItGoesOnAtTheLastThatDoesNot) {
  FakeWorld world({{.commit = 5, .line = 10, .until = 12},
                   {.commit = 9, .line = 20},
                   {.commit = 15, .line = 30, .by_sources = true}});

  const auto result = Peel(world, 2);

  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Lines(*result), ElementsAre("5 revert up to 12, not 13", "9 revert", "15 static"));
  EXPECT_EQ(result->reached, 12);
  EXPECT_EQ(result->last->verdict.kind, VerdictKind::kOk);
  EXPECT_EQ(result->why, "more than 2 culprits") << "the next would be what builds on the first";
  EXPECT_LE(world.runs(), 12) << "halving";
}

TEST(PeelTest, WhatBuildsOnACulpritGoesWithIt) {
  FakeWorld world({{.commit = 5, .line = 10, .until = 12},
                   {.commit = 9, .line = 20},
                   {.commit = 15, .line = 30}});

  const auto result = Peel(world, 10);

  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Lines(*result),
              ElementsAre("5 revert up to 12, not 13", "9 revert", "13 with 5", "15 revert"));
  EXPECT_TRUE(result->works);
  EXPECT_EQ(result->reached, kNewest);
}

TEST(PeelTest, ACommitAtWhichTheClimbingPairBreaksIsACulpritAndNotInTheWay) {
  FakeWorld world({{.commit = 5, .line = 10, .until = 12},
                   {.commit = 9, .line = 20},
                   {.commit = 15, .line = 15, .by_sources = true}});

  const auto result = Peel(world, 10);

  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Lines(*result), ElementsAre("5 revert up to 12, not 13", "9 revert",
                                          "13 with 5 up to 14, not 15", "15 revert"));
  EXPECT_THAT(result->steps[3].breaks, ElementsAre(BreakAt(15)));
  EXPECT_TRUE(result->works);
}

TEST(PeelTest, WhatBreaksOnlyTheLibrarysOwnCodeIsInTheWay) {
  FakeWorld world({{.commit = 5, .line = 10, .until = 12},
                   {.commit = 9, .line = 20},
                   {.commit = 15, .line = 15, .in_library = true}});
  const auto result = Peel(world, 10);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Lines(*result).back(), "15 with 13");
  EXPECT_TRUE(result->works);
}

TEST(PeelTest, WhatOnlyMeetsACulpritIsNotInTheWay) {
  FakeWorld world({{.commit = 5, .line = 10, .until = 12, .met = 15}});

  const auto result = Peel(world, 10);

  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Lines(*result), ElementsAre("5 revert up to 12, not 13", "13 with 5"));
  EXPECT_TRUE(result->works);
}

TEST(PeelTest, ACulpritThatComesOutOfNoCommitEndsItWhereItStands) {
  FakeWorld world({{.commit = 5, .line = 10, .removable = {}}});
  const auto result = Peel(world, 10);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Lines(*result), ElementsAre("5 stays"));
  EXPECT_EQ(result->reached, kNewest);
  EXPECT_EQ(world.at(), kNewest);
}

TEST(PeelTest, APairThatWorksHasNoCulprit) {
  FakeWorld world({});
  const auto result = Peel(world, 10);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->works);
  EXPECT_THAT(result->steps, IsEmpty());
}

TEST(PeelTest, SaysWhenThereAreMoreThanItMayTakeOut) {
  FakeWorld world({{.commit = 9, .line = 10}, {.commit = 5, .line = 20}});
  const auto result = Peel(world, 1);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Lines(*result), ElementsAre("9 revert"));
  EXPECT_EQ(result->why, "more than 1 culprits");
}

PeelSight BrokenAt(Stage stage, std::vector<EngineFrame> frames) {
  return {{.kind = VerdictKind::kBroken, .stage = stage}, "", std::move(frames)};
}

TEST(GotPastTest, IsToldByTheStageThenByTheFirstLineAtWhichTheStacksPart) {
  const PeelSight failure =
      BrokenAt(Stage::kConstruct, {{"e.py", "init", 10}, {"e.py", "build", 50}});
  EXPECT_EQ(GotPast(BrokenAt(Stage::kForward, {}), failure), true);
  EXPECT_EQ(GotPast(BrokenAt(Stage::kImport, {}), failure), false);
  EXPECT_EQ(GotPast(BrokenAt(Stage::kConstruct, {{"e.py", "init", 12}}), failure), true);
  EXPECT_EQ(
      GotPast(BrokenAt(Stage::kConstruct, {{"e.py", "init", 10}, {"e.py", "build", 49}}), failure),
      false);
  EXPECT_EQ(
      GotPast(BrokenAt(Stage::kConstruct, {{"e.py", "init", 10}, {"e.py", "other", 99}}), failure),
      std::nullopt);
}

TEST(GotPastTest, APairThatRanToItsEndGotPastOneThatStopped) {
  PeelSight wrong = BrokenAt(Stage::kBackend, {});
  wrong.verdict.kind = VerdictKind::kWrong;
  EXPECT_EQ(GotPast(wrong, BrokenAt(Stage::kForward, {})), true);
  EXPECT_EQ(GotPast(BrokenAt(Stage::kForward, {}), wrong), false);
}

}  // namespace
}  // namespace bkm
