// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/frontier.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <functional>
#include <random>

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr PairGrade kRed = PairGrade::kImport;
constexpr PairGrade kFree = PairGrade::kNothing;

std::vector<PairGrade> Row(int red_before, int free, int red_after) {
  std::vector<PairGrade> row(red_before, kRed);
  row.insert(row.end(), free, kFree);
  row.insert(row.end(), red_after, kRed);
  return row;
}

// Runs all wanted pairs until none is left; returns their number.
int RunAll(Frontier& frontier, const std::function<RunOutcome(PlanePoint)>& run) {
  int runs = 0;
  for (;;) {
    const std::vector<PlanePoint> wanted = frontier.Wanted(1000);
    if (wanted.empty()) return runs;
    for (const PlanePoint& point : wanted) {
      frontier.Tell(point, run(point));
      ++runs;
    }
    if (runs > 1000) {
      ADD_FAILURE() << "it does not end";
      return runs;
    }
  }
}

// Only columns from `oldest` to `newest` work.
int RunAll(Frontier& frontier, int oldest, int newest) {
  return RunAll(frontier, [=](PlanePoint point) {
    const bool works = point.column >= oldest && point.column <= newest;
    return works ? RunOutcome::kWorks : RunOutcome::kFails;
  });
}

std::vector<Frontier::Working> NewestWorking(const Frontier& frontier) {
  return frontier.AreasOf(frontier.bands()[0]).front().working;
}

TEST(FrontierTest, EqualNeighbouringRowsMakeOneBandAndRedColumnsNone) {
  const Frontier frontier({Row(2, 3, 1), Row(2, 3, 1), Row(6, 0, 0), Row(1, 5, 0)});
  EXPECT_THAT(frontier.bands(), ElementsAre(Band{0, 1, 2, 4}, Band{3, 3, 1, 5}));
}

TEST(FrontierTest, BandWhoseEndsWorkTakesTwoRuns) {
  Frontier frontier({Row(2, 100, 5)});
  EXPECT_THAT(frontier.Wanted(9), ElementsAre(PlanePoint{0, 2}, PlanePoint{0, 101}));
  EXPECT_EQ(RunAll(frontier, 0, 1000), 2);
  EXPECT_THAT(NewestWorking(frontier), ElementsAre(Frontier::Working{2, 101}));
}

TEST(FrontierTest, BoundaryInsideOfABandIsFoundExactlyByHalving) {
  Frontier frontier({Row(0, 128, 0)});
  EXPECT_LE(RunAll(frontier, 0, 76), 2 + 7);
  EXPECT_THAT(NewestWorking(frontier), ElementsAre(Frontier::Working{0, 76}));
}

TEST(FrontierTest, StretchInTheMiddleIsFoundBetweenEndsThatFail) {
  Frontier frontier({Row(0, 128, 0)});
  RunAll(frontier, 30, 70);
  EXPECT_THAT(NewestWorking(frontier), ElementsAre(Frontier::Working{30, 70}));
}

TEST(FrontierTest, BandWhereNothingWorksIsGivenUpAfterEightParts) {
  Frontier frontier({Row(0, 128, 0)});
  EXPECT_EQ(RunAll(frontier, 1, 0), 9);
  EXPECT_THAT(NewestWorking(frontier), IsEmpty());
}

TEST(FrontierTest, PairThatSaysNothingIsSteppedAround) {
  Frontier frontier({Row(0, 10, 0)});
  frontier.Tell({0, 0}, RunOutcome::kSaysNothing);
  frontier.Tell({0, 9}, RunOutcome::kSaysNothing);
  EXPECT_THAT(frontier.Wanted(9), ElementsAre(PlanePoint{0, 1}, PlanePoint{0, 8}));
}

TEST(FrontierTest, KnownOutcomesAreNotAskedAgain) {
  Frontier frontier({Row(0, 10, 0)});
  frontier.Tell({0, 0}, RunOutcome::kWorks);
  frontier.Tell({0, 9}, RunOutcome::kWorks);
  EXPECT_THAT(frontier.Wanted(9), IsEmpty());
}

TEST(FrontierTest, OldestEngineRunsAtTheCornersOfWhatTheNewestWorksWith) {
  Frontier frontier(std::vector(5, Row(2, 100, 5)));
  frontier.Tell({4, 2}, RunOutcome::kWorks);
  EXPECT_THAT(frontier.Wanted(9), ElementsAre(PlanePoint{4, 101}));
  frontier.Tell({4, 101}, RunOutcome::kWorks);
  EXPECT_THAT(frontier.Wanted(9), ElementsAre(PlanePoint{0, 2}, PlanePoint{0, 101}));
  EXPECT_EQ(RunAll(frontier, 0, 1000), 2);
  EXPECT_THAT(frontier.AreasOf(frontier.bands()[0]), ElementsAre(Frontier::Area{0, 4, {{2, 101}}}));
}

TEST(FrontierTest, EngineThatBehavesOtherwiseAlthoughItAsksTheSameIsFoundExactly) {
  Frontier frontier(std::vector(100, Row(0, 128, 0)));
  // Engines from 37 on work with libraries up to 90, older engines up to 50.
  const int runs = RunAll(frontier, [](PlanePoint point) {
    return point.column <= (point.row >= 37 ? 90 : 50) ? RunOutcome::kWorks : RunOutcome::kFails;
  });
  EXPECT_THAT(frontier.AreasOf(frontier.bands()[0]),
              ElementsAre(Frontier::Area{37, 99, {{0, 90}}}, Frontier::Area{0, 36, {{0, 50}}}));
  EXPECT_LE(runs, 65);
}

TEST(FrontierTest, EngineOfWhichNothingIsKnownGoesWithTheNewerAndOneThatContradictsWithNone) {
  Frontier frontier(std::vector(9, Row(0, 10, 0)));
  frontier.Tell({8, 0}, RunOutcome::kWorks);
  frontier.Tell({8, 9}, RunOutcome::kWorks);
  const Band& band = frontier.bands()[0];
  EXPECT_THAT(frontier.AreasOf(band), ElementsAre(Frontier::Area{0, 8, {{0, 9}}}));
  frontier.Tell({0, 0}, RunOutcome::kFails);
  frontier.Tell({0, 9}, RunOutcome::kWorks);
  EXPECT_THAT(frontier.AreasOf(band),
              ElementsAre(Frontier::Area{8, 8, {{0, 9}}}, Frontier::Area{0, 0, {{9, 9}}}));
}

TEST(FrontierTest, EnginesThatSayNothingAreSteppedAroundBetweenTwoThatDiffer) {
  Frontier frontier(std::vector(20, Row(0, 8, 0)));
  RunAll(frontier, [](PlanePoint point) {
    if (point.row > 4 && point.row < 15) return RunOutcome::kSaysNothing;
    return point.row >= 15 || point.column > 3 ? RunOutcome::kWorks : RunOutcome::kFails;
  });
  EXPECT_THAT(frontier.AreasOf(frontier.bands()[0]),
              ElementsAre(Frontier::Area{15, 19, {{0, 7}}}, Frontier::Area{0, 4, {{4, 7}}}));
}

TEST(FrontierTest, ReleasesRunAlsoWhereNoBoundaryIs) {
  Frontier frontier(std::vector(9, Row(0, 50, 0)), {.rows = {3}, .columns = {20, 70}});
  EXPECT_EQ(RunAll(frontier, 0, 1000), 3 + 3 + 2);
  EXPECT_THAT(frontier.AreasOf(frontier.bands()[0]), ElementsAre(Frontier::Area{0, 8, {{0, 49}}}));
}

TEST(FrontierTest, GapIsFoundWhereItIsNoShorterThanTheResolution) {
  const auto gap = [](PlanePoint point) {
    return point.column >= 60 && point.column < 80 ? RunOutcome::kFails : RunOutcome::kWorks;
  };
  Frontier coarse({Row(0, 256, 0)});
  EXPECT_EQ(RunAll(coarse, gap), 2);
  EXPECT_THAT(NewestWorking(coarse), ElementsAre(Frontier::Working{0, 255}));
  Frontier fine({Row(0, 256, 0)}, {.resolution = 20});
  RunAll(fine, gap);
  EXPECT_THAT(NewestWorking(fine),
              ElementsAre(Frontier::Working{0, 59}, Frontier::Working{80, 255}));
}

TEST(FrontierTest, EnginesThatDifferBetweenTwoThatAreAlikeAreFoundFromTheResolutionOn) {
  const auto gap = [](PlanePoint point) {
    return point.row >= 40 && point.row < 60 ? RunOutcome::kFails : RunOutcome::kWorks;
  };
  const std::vector<std::vector<PairGrade>> plane(100, Row(0, 3, 0));
  Frontier coarse(plane);
  EXPECT_EQ(RunAll(coarse, gap), 4);
  Frontier fine(plane, {.resolution = 20});
  RunAll(fine, gap);
  EXPECT_THAT(fine.AreasOf(fine.bands()[0]),
              ElementsAre(Frontier::Area{60, 99, {{0, 2}}}, Frontier::Area{40, 59, {}},
                          Frontier::Area{0, 39, {{0, 2}}}));
}

TEST(FrontierTest, RunOfAnyEngineThatContradictsIsLookedInto) {
  Frontier frontier(std::vector(9, Row(0, 100, 0)));
  frontier.Tell({4, 50}, RunOutcome::kFails);
  RunAll(frontier, [](PlanePoint point) {
    return point.column == 50 ? RunOutcome::kFails : RunOutcome::kWorks;
  });
  EXPECT_THAT(frontier.AreasOf(frontier.bands()[0]),
              ElementsAre(Frontier::Area{0, 8, {{0, 49}, {51, 99}}}));
}

TEST(FrontierTest, EnginesOfTwoBehavioursAreToldApartWhereverTheyChange) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const int rows = 2 + static_cast<int>(random() % 60), columns = 20;
    const int change = 1 + static_cast<int>(random() % (rows - 1));
    const int old_end = static_cast<int>(random() % 19), new_end = static_cast<int>(random() % 19);
    const int silent = static_cast<int>(random() % columns);
    Frontier frontier(std::vector(rows, Row(0, columns, 0)));
    RunAll(frontier, [&](PlanePoint point) {
      if (point.row % 7 == 3 && point.column == silent) return RunOutcome::kSaysNothing;
      const int end = point.row < change ? old_end : new_end;
      return point.column <= end ? RunOutcome::kWorks : RunOutcome::kFails;
    });
    for (const Frontier::Area& area : frontier.AreasOf(frontier.bands()[0])) {
      ASSERT_EQ(area.working.size(), 1u);
      const int end = area.last_row < change ? old_end : new_end;
      // A pair that says nothing may hide the last working one.
      EXPECT_THAT(area.working[0].last_column, ::testing::AnyOf(end, end - 1)) << "round " << round;
      const bool of_one_kind = area.last_row < change || area.first_row >= change;
      EXPECT_TRUE(of_one_kind || std::abs(old_end - new_end) < 2) << "round " << round;
    }
  }
}

TEST(FrontierTest, OnlyAsManyAsThereIsRoom) {
  const Frontier frontier({Row(0, 10, 0)});
  EXPECT_THAT(frontier.Wanted(1), ElementsAre(PlanePoint{0, 0}));
}

}  // namespace
}  // namespace bkm
