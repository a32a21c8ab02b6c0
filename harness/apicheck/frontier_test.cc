// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/frontier.h"

#include <gmock/gmock.h>

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

// Runs what is wanted until nothing is, where only columns from `oldest` to `newest` work.
int RunAll(Frontier& frontier, int oldest, int newest) {
  int runs = 0;
  for (;;) {
    const std::vector<PlanePoint> wanted = frontier.Wanted(1000);
    if (wanted.empty()) return runs;
    for (const PlanePoint& point : wanted) {
      const bool works = point.column >= oldest && point.column <= newest;
      frontier.Tell(point, works ? RunOutcome::kWorks : RunOutcome::kFails);
      ++runs;
    }
  }
}

TEST(FrontierTest, EqualNeighbouringRowsMakeOneBandAndRedColumnsNone) {
  const Frontier frontier({Row(2, 3, 1), Row(2, 3, 1), Row(6, 0, 0), Row(1, 5, 0)});
  EXPECT_THAT(frontier.bands(), ElementsAre(Band{0, 1, 2, 4}, Band{3, 3, 1, 5}));
}

TEST(FrontierTest, BandWhoseEndsWorkTakesTwoRuns) {
  Frontier frontier({Row(2, 100, 5)});
  EXPECT_THAT(frontier.Wanted(9), ElementsAre(PlanePoint{0, 2}, PlanePoint{0, 101}));
  EXPECT_EQ(RunAll(frontier, 0, 1000), 2);
  EXPECT_THAT(frontier.WorkingIn(frontier.bands()[0]), ElementsAre(Frontier::Working{2, 101}));
}

TEST(FrontierTest, BoundaryInsideOfABandIsFoundExactlyByHalving) {
  Frontier frontier({Row(0, 128, 0)});
  EXPECT_LE(RunAll(frontier, 0, 76), 2 + 7);
  EXPECT_THAT(frontier.WorkingIn(frontier.bands()[0]), ElementsAre(Frontier::Working{0, 76}));
}

TEST(FrontierTest, StretchInTheMiddleIsFoundBetweenEndsThatFail) {
  Frontier frontier({Row(0, 128, 0)});
  RunAll(frontier, 30, 70);
  EXPECT_THAT(frontier.WorkingIn(frontier.bands()[0]), ElementsAre(Frontier::Working{30, 70}));
}

TEST(FrontierTest, BandWhereNothingWorksIsGivenUpAfterEightParts) {
  Frontier frontier({Row(0, 128, 0)});
  EXPECT_EQ(RunAll(frontier, 1, 0), 9);
  EXPECT_THAT(frontier.WorkingIn(frontier.bands()[0]), IsEmpty());
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

TEST(FrontierTest, OnlyAsManyAsThereIsRoom) {
  const Frontier frontier({Row(0, 10, 0)});
  EXPECT_THAT(frontier.Wanted(1), ElementsAre(PlanePoint{0, 0}));
}

}  // namespace
}  // namespace bkm
