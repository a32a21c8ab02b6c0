// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/search/bisection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/search/search_world.h"

namespace bkm {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Searches a line of commits, one letter each, between the first and the last.
BisectionResult SearchLine(const std::string& letters, SearchWorld* asked = nullptr,
                           const char* until = "") {
  const int count = static_cast<int>(letters.size());
  const CommitGraph graph(Line(count));
  Bisection bisection(graph,
                      {.late = count - 1, .early = 0, .criterion = *Criterion::Parse(until)});
  SearchWorld world(Letters(letters));
  world.Run(bisection);
  if (asked) *asked = world;
  return bisection.result();
}

TEST(BisectionTest, FindsTheFirstBadCommitOfALineAndConfirmsBothSides) {
  SearchWorld world(Letters(""));
  const BisectionResult result = SearchLine("GGGGGGGGGGGBBBBB", &world);
  EXPECT_EQ(result.status, SearchStatus::kFound);
  EXPECT_EQ(result.culprit, 11);
  EXPECT_THAT(result.parents, ElementsAre(10));
  EXPECT_EQ(result.after, Side::kBad);
  // Two ends, four halvings of fifteen candidates, one repeat of the good side, four of the bad.
  ASSERT_EQ(world.asked.size(), 11u);
  EXPECT_EQ(world.asked[6], (Trial{.commit = 11, .run = 2}));
  EXPECT_EQ(world.asked[7], (Trial{.commit = 10, .run = 2}));
  for (int run = 3; run <= 5; ++run)
    EXPECT_EQ(world.asked[5 + run], (Trial{.commit = 11, .run = run}));
}

TEST(BisectionTest, EveryBoundaryOfALineIsFoundWhateverTheOrderOfAnswers) {
  for (int culprit = 1; culprit < 33; ++culprit) {
    for (int slots = 1; slots <= 4; ++slots) {
      const CommitGraph graph(Line(33));
      Bisection bisection(graph, {.late = 32, .early = 0});
      SearchWorld world([&](const Trial& p) { return p.commit < culprit ? Ok() : Broken(); }, slots,
                        culprit);
      world.Run(bisection);
      EXPECT_EQ(bisection.result().status, SearchStatus::kFound);
      EXPECT_EQ(bisection.result().culprit, culprit) << slots << " slots";
    }
  }
}

TEST(BisectionTest, TwoSlotsCutALineIntoThirds) {
  const CommitGraph graph(Line(31));
  Bisection bisection(graph, {.late = 30, .early = 0});
  EXPECT_THAT(bisection.Wanted(2),
              ElementsAre(Trial{.commit = 30, .run = 1}, Trial{.commit = 0, .run = 1}));
  bisection.Tell({.commit = 30}, Broken());
  bisection.Tell({.commit = 0}, Ok());
  EXPECT_THAT(bisection.Wanted(2), UnorderedElementsAre(Trial{.commit = 9}, Trial{.commit = 19}));
  // While one trial is in flight, the other slot takes the best commit in addition to it.
  bisection.Tell({.commit = 9}, Ok());
  EXPECT_THAT(bisection.Wanted(1), ElementsAre(Trial{.commit = 24}));
}

TEST(BisectionTest, ASuspectIsMeasuredFirstBesideItsParentWhichDoesForTheOlderEnd) {
  const CommitGraph graph(Line(65));
  Bisection bisection(graph, {.late = 64, .early = 0, .suspects = {11}});
  SearchWorld world([](const Trial& p) { return p.commit < 11 ? Ok() : Broken(); });
  world.Run(bisection);
  EXPECT_EQ(bisection.result().status, SearchStatus::kFound);
  EXPECT_EQ(bisection.result().culprit, 11);
  EXPECT_EQ(bisection.result().before, Side::kGood);
  EXPECT_EQ(bisection.result().after, Side::kBad);
  EXPECT_THAT(world.asked,
              UnorderedElementsAre(Trial{.commit = 64}, Trial{.commit = 10}, Trial{.commit = 11},
                                   Trial{.commit = 10, .run = 2}, Trial{.commit = 11, .run = 2},
                                   Trial{.commit = 11, .run = 3}, Trial{.commit = 11, .run = 4},
                                   Trial{.commit = 11, .run = 5}));
}

TEST(BisectionTest, ASoleSuspectIsConfirmedWhileItsFirstRunsGoOn) {
  const CommitGraph graph(Line(65));
  Bisection bisection(graph, {.late = 64, .early = 0, .suspects = {11}});
  EXPECT_THAT(bisection.Wanted(2), ElementsAre(Trial{.commit = 64}, Trial{.commit = 10}));
  bisection.Tell({.commit = 64}, Broken());
  EXPECT_THAT(bisection.Wanted(1), ElementsAre(Trial{.commit = 11}));
  bisection.Tell({.commit = 11}, Broken());
  const Trial again{.commit = 10, .run = 2};
  EXPECT_THAT(bisection.Wanted(1), ElementsAre(again));
  bisection.Tell(again, Ok());
  EXPECT_THAT(bisection.Wanted(9),
              ElementsAre(Trial{.commit = 11, .run = 2}, Trial{.commit = 11, .run = 3},
                          Trial{.commit = 11, .run = 4}, Trial{.commit = 11, .run = 5}));
  for (int run = 2; run <= 5; ++run) bisection.Tell({.commit = 11, .run = run}, Broken());
  EXPECT_FALSE(bisection.done()) << "the first run of the good side is not in";
  bisection.Tell({.commit = 10}, Ok());
  EXPECT_TRUE(bisection.done());
  EXPECT_EQ(bisection.result().culprit, 11);
}

TEST(BisectionTest, ASideThatWasOnlyConfirmedIsMeasuredOnceMore) {
  // As after a crash: the second run is stored, the first is not.
  const CommitGraph graph(Line(9));
  Bisection bisection(graph, {.late = 8, .early = 0, .suspects = {5}});
  bisection.Tell({.commit = 4, .run = 2}, Ok());
  SearchWorld world([](const Trial& p) { return p.commit < 5 ? Ok() : Broken(); });
  world.Run(bisection);
  EXPECT_EQ(bisection.result().culprit, 5);
  EXPECT_THAT(world.asked, Contains(Trial{.commit = 4, .run = 3}));
}

TEST(BisectionTest, WhereTheSuspectsTellNothingTheOlderEndIsMeasured) {
  const CommitGraph graph(Line(9));
  Bisection bisection(graph, {.late = 8, .early = 0, .suspects = {5}});
  SearchWorld world(Letters("BBBBBBBBB"));
  world.Run(bisection);
  EXPECT_EQ(bisection.result().status, SearchStatus::kNone);
  EXPECT_THAT(bisection.result().why, HasSubstr("both ends are bad"));
}

TEST(BisectionTest, WithAPatternTheGoodEndIsMeasuredFirstForItSaysWhatIsGood) {
  const CommitGraph graph(Line(9));
  Bisection bisection(
      graph,
      {.late = 8, .early = 0, .suspects = {5}, .criterion = *Criterion::Parse("stage=import")});
  EXPECT_THAT(bisection.Wanted(2), ElementsAre(Trial{.commit = 8}, Trial{.commit = 0}));
}

TEST(BisectionTest, WrongSuspectsCostTwoTrialsEachAndDecideNothing) {
  for (int culprit = 1; culprit < 33; ++culprit) {
    for (const int suspect : {1, 7, 30, 32}) {
      for (int slots = 1; slots <= 4; ++slots) {
        const CommitGraph graph(Line(33));
        Bisection with(graph, {.late = 32, .early = 0, .suspects = {suspect}});
        Bisection without(graph, {.late = 32, .early = 0});
        const auto outcome = [&](const Trial& p) { return p.commit < culprit ? Ok() : Broken(); };
        SearchWorld world(outcome, slots, culprit), plain(outcome, slots, culprit);
        world.Run(with);
        plain.Run(without);
        EXPECT_EQ(with.result().culprit, culprit);
        if (slots > 1) continue;
        EXPECT_LE(world.asked.size(), plain.asked.size() + 2) << culprit << " " << suspect;
      }
    }
  }
}

TEST(BisectionTest, SlotsThatTheEndsLeaveFreeAreUsed) {
  const CommitGraph graph(Line(31));
  Bisection bisection(graph, {.late = 30, .early = 0});
  EXPECT_THAT(bisection.Wanted(3),
              ElementsAre(Trial{.commit = 30}, Trial{.commit = 0}, Trial{.commit = 15}));
}

TEST(BisectionTest, WhileASlowEndRunsTheOtherSlotBisects) {
  const CommitGraph graph(Line(65));
  Bisection bisection(graph, {.late = 64, .early = 0});
  bisection.Wanted(2);
  bisection.Tell({.commit = 64}, Broken());
  // The outcome of the older end, which is good, comes late.
  std::vector<int> asked;
  for (int i = 0; i < 6; ++i) {
    const std::vector<Trial> wanted = bisection.Wanted(1);
    ASSERT_EQ(wanted.size(), 1u);
    asked.push_back(wanted[0].commit);
    bisection.Tell(wanted[0], wanted[0].commit < 20 ? Ok() : Broken());
  }
  EXPECT_THAT(asked, ElementsAre(32, 16, 24, 20, 18, 19));
  EXPECT_THAT(bisection.Wanted(1), IsEmpty());
  bisection.Tell({.commit = 0}, Ok());
  EXPECT_THAT(bisection.Wanted(2),
              ElementsAre(Trial{.commit = 20, .run = 2}, Trial{.commit = 19, .run = 2}));
}

TEST(BisectionTest, WhatWasMeasuredBeforeAnyEndIsSpreadOverTheHistory) {
  const CommitGraph graph(Line(65));
  Bisection bisection(graph, {.late = 64, .early = 0});
  EXPECT_THAT(bisection.Wanted(3),
              ElementsAre(Trial{.commit = 64}, Trial{.commit = 0}, Trial{.commit = 32}));
  bisection.Tell({.commit = 32}, Broken());
  EXPECT_THAT(bisection.Wanted(1), ElementsAre(Trial{.commit = 16}));
  bisection.Tell({.commit = 16}, Ok());
  EXPECT_THAT(bisection.Wanted(1), ElementsAre(Trial{.commit = 48}));
}

TEST(BisectionTest, ANewerGoodEndFindsTheCommitThatMendedIt) {
  const BisectionResult result = SearchLine("BBBBBGGG");
  EXPECT_EQ(result.status, SearchStatus::kFound);
  EXPECT_EQ(result.culprit, 5);
  EXPECT_EQ(result.before, Side::kBad);
  EXPECT_EQ(result.after, Side::kGood);
}

TEST(BisectionTest, EndsThatDoNotDifferHaveNoBoundary) {
  const BisectionResult result = SearchLine("GBBBG");
  EXPECT_EQ(result.status, SearchStatus::kNone);
  EXPECT_EQ(result.why, "both ends are good (older: ok; newer: ok)");
  EXPECT_EQ(SearchLine("WGGB").why,
            "both ends are bad (older: wrong at golden, log-probs-off; newer: broken at import, "
            "missing-module)");
}

TEST(BisectionTest, AnEndThatCannotBeJudgedIsNoEnd) {
  EXPECT_EQ(SearchLine("GGBs").status, SearchStatus::kNone);
  EXPECT_EQ(SearchLine("GGBs").why,
            "the newer end cannot be judged (spurious at import, killed): name another");
  EXPECT_THAT(SearchLine("sGBB").why, HasSubstr("the older end is neither good nor bad"));
}

TEST(BisectionTest, StepsAroundAStretchThatCannotBeJudged) {
  const std::string letters =
      std::string(20, 'G') + std::string(30, 's') + std::string(30, 'G') + std::string(20, 'B');
  SearchWorld world(Letters(""));
  const BisectionResult result = SearchLine(letters, &world);
  EXPECT_EQ(result.status, SearchStatus::kFound);
  EXPECT_EQ(result.culprit, 80);
  int skipped = 0;
  for (const int commit : world.AskedCommits()) skipped += letters[commit] == 's';
  EXPECT_LE(skipped, 2);  // the middle of the line lies in the stretch
}

TEST(BisectionTest, ABoundaryInsideAStretchThatCannotBeJudgedGivesTheWholeStretch) {
  const BisectionResult result = SearchLine("GGGGsssssBBBB");
  EXPECT_EQ(result.status, SearchStatus::kAmbiguous);
  EXPECT_THAT(result.candidates, ElementsAre(4, 5, 6, 7, 8, 9));
  EXPECT_EQ(result.culprit, -1);
  EXPECT_EQ(result.why, "5 commits before the first known bad one cannot be judged");
}

TEST(BisectionTest, WhereNothingBetweenTheEndsCanBeJudgedAllAreCandidates) {
  const BisectionResult result = SearchLine("GsssB");
  EXPECT_EQ(result.status, SearchStatus::kAmbiguous);
  EXPECT_THAT(result.candidates, ElementsAre(1, 2, 3, 4));
}

TEST(BisectionTest, AnythingButOkIsBadUnlessTold) { EXPECT_EQ(SearchLine("GGGWWWBBB").culprit, 3); }

TEST(BisectionTest, UntilAReasonADifferentlyBadCommitIsNeither) {
  // The wrong ones are neither, so the answer lies between them and the first match.
  const BisectionResult result = SearchLine("GGGWWWBBB", nullptr, "stage=import");
  EXPECT_EQ(result.status, SearchStatus::kAmbiguous);
  EXPECT_THAT(result.candidates, ElementsAre(3, 4, 5, 6));
}

TEST(BisectionTest, UntilAReasonGoodIsWhatTheGoodEndIs) {
  const BisectionResult result = SearchLine("WWWWWBBBB", nullptr, "stage=import");
  EXPECT_EQ(result.status, SearchStatus::kFound);
  EXPECT_EQ(result.culprit, 5);
  EXPECT_EQ(result.before, Side::kGood);
  const BisectionResult back = SearchLine("BBBBWWWW", nullptr, "stage=import");
  EXPECT_EQ(back.culprit, 4);
  EXPECT_EQ(back.after, Side::kGood);
}

TEST(BisectionTest, RevertOfARevertIsTheCulpritOfToday) {
  std::vector<GraphCommit> commits = Line(6);
  for (int i = 0; i < 6; ++i) commits[i].content = i % 2 ? "with" : "without";
  const CommitGraph graph(commits);
  Bisection bisection(graph, {.late = 5, .early = 0});
  SearchWorld world(Letters("GBGBGB"));
  world.Run(bisection);
  EXPECT_EQ(bisection.result().culprit, 5);
  // Equal content is measured once: two ends, five repeats.
  EXPECT_EQ(world.asked.size(), 7u);
}

TEST(BisectionTest, CommitsOfEqualContentAreOneCell) {
  std::vector<GraphCommit> commits = Line(100);
  for (int i = 0; i < 100; ++i) commits[i].content = i < 70 ? "old" : "new";
  const CommitGraph graph(commits);
  Bisection bisection(graph, {.late = 99, .early = 0});
  SearchWorld world([](const Trial& p) { return p.commit < 70 ? Ok() : Broken(); });
  world.Run(bisection);
  EXPECT_EQ(bisection.result().culprit, 70);
  EXPECT_EQ(world.asked.size(), 7u);
}

// 0 - 1 - 2 - - - - 6 - 7      mainline
//      \           /
//       3 - 4 - 5             branch
CommitGraph Merged() {
  std::vector<GraphCommit> commits = Line(8);
  commits[3].parents = {1};
  commits[6].parents = {2, 5};
  return CommitGraph(commits);
}

TEST(BisectionTest, FindsABoundaryInsideAMergedBranch) {
  for (int seed = 0; seed < 20; ++seed) {
    const CommitGraph graph = Merged();
    Bisection bisection(graph, {.late = 7, .early = 0});
    SearchWorld world(Letters("GGGGBBBB"), 1 + seed % 3, seed);
    world.Run(bisection);
    EXPECT_EQ(bisection.result().status, SearchStatus::kFound);
    EXPECT_EQ(bisection.result().culprit, 4);
    EXPECT_THAT(bisection.result().parents, ElementsAre(3));
  }
}

TEST(BisectionTest, AMergeOfTwoGoodParentsCanBeTheCulpritAndBothAreConfirmed) {
  const CommitGraph graph = Merged();
  Bisection bisection(graph, {.late = 7, .early = 0});
  SearchWorld world(Letters("GGGGGGBB"));
  world.Run(bisection);
  EXPECT_EQ(bisection.result().culprit, 6);
  EXPECT_THAT(bisection.result().parents, ElementsAre(2, 5));
}

// 0 - 1 - 2 - 3 - - 5     2 breaks, 3 fixes on the mainline; 4 branches off the broken 2
//          \       /
//           4 - - -
TEST(BisectionTest, AParentThatWasTakenForGoodIsMeasuredBeforeTheCulpritIsNamed) {
  std::vector<GraphCommit> commits = Line(6);
  commits[4].parents = {2};
  commits[5].parents = {3, 4};
  const CommitGraph graph(commits);
  Bisection bisection(graph, {.late = 5, .early = 0});
  SearchWorld world(Letters("GGBGBB"));
  world.Run(bisection);
  EXPECT_EQ(bisection.result().status, SearchStatus::kFound);
  EXPECT_EQ(bisection.result().culprit, 2);
  EXPECT_THAT(bisection.result().parents, ElementsAre(1));
}

TEST(BisectionTest, ContradictionOnConfirmingIsUnstable) {
  const CommitGraph graph(Line(8));
  Bisection bisection(graph, {.late = 7, .early = 0});
  SearchWorld world([](const Trial& p) { return p.run == 2 || p.commit < 5 ? Ok() : Broken(); });
  world.Run(bisection);
  EXPECT_EQ(bisection.result().status, SearchStatus::kUnstable);
  EXPECT_THAT(bisection.result().candidates, ElementsAre(5));
}

TEST(BisectionTest, AConfirmationThatSaysNothingIsTakenAgain) {
  const CommitGraph graph(Line(8));
  Bisection bisection(graph, {.late = 7, .early = 0});
  SearchWorld world([](const Trial& p) {
    if (p.run == 2 && p.commit == 5) return Unjudgeable();
    return p.commit < 5 ? Ok() : Broken();
  });
  world.Run(bisection);
  EXPECT_EQ(bisection.result().status, SearchStatus::kFound);
  EXPECT_THAT(world.asked, Contains(Trial{.commit = 5, .run = 3}));
}

TEST(BisectionTest, StepsBackOneTwoFourDaysToFindTheOtherEnd) {
  const CommitGraph graph(Line(40));
  Bisection bisection(graph, {.late = 39});
  SearchWorld world([](const Trial& p) { return p.commit < 27 ? Ok() : Broken(); });
  world.Run(bisection);
  EXPECT_EQ(bisection.result().culprit, 27);
  EXPECT_EQ(bisection.result().early, 23);
  std::vector<int> asked = world.AskedCommits();
  asked.resize(6);
  EXPECT_THAT(asked, ElementsAre(39, 38, 37, 35, 31, 23));
}

TEST(BisectionTest, StepsBackWhateverTheOrderOfAnswers) {
  for (int seed = 1; seed <= 30; ++seed) {
    const CommitGraph graph(Line(40));
    Bisection bisection(graph, {.late = 39});
    SearchWorld world([&](const Trial& p) { return p.commit <= seed ? Ok() : Broken(); },
                      1 + seed % 4, seed);
    world.Run(bisection);
    EXPECT_EQ(bisection.result().culprit, seed + 1);
  }
}

TEST(BisectionTest, WithoutAnotherEndThereIsNoBoundary) {
  const CommitGraph graph(Line(40));
  Bisection bisection(graph, {.late = 39});
  SearchWorld world([](const Trial&) { return Broken(); });
  world.Run(bisection);
  EXPECT_EQ(bisection.result().status, SearchStatus::kNone);
  EXPECT_EQ(bisection.result().why,
            "the cell is bad (broken at import, missing-module) as far back as the history goes");
  EXPECT_EQ(world.asked.back().commit, 0);
}

TEST(BisectionTest, GoesOnFromWhatWasMeasuredBefore) {
  const CommitGraph graph(Line(100));
  SearchWorld world([](const Trial& p) { return p.commit < 61 ? Ok() : Broken(); }, 3, 7);
  Bisection first(graph, {.late = 99, .early = 0});
  world.Run(first);
  ASSERT_EQ(first.result().culprit, 61);

  Bisection second(graph, {.late = 99, .early = 0});
  world.Repeat(second);

  EXPECT_TRUE(second.done());
  EXPECT_EQ(second.result().culprit, 61);
  EXPECT_THAT(second.Wanted(4), IsEmpty());
}

TEST(BisectionTest, WhatWasMeasuredElsewhereIsNotItsOwn) {
  const CommitGraph graph(Line(4));
  Bisection bisection(graph, {.late = 3, .early = 0, .runtime_of = 3});
  bisection.Tell({.commit = 3, .run = 1, .runtime_of = 0}, Ok());
  EXPECT_THAT(bisection.Wanted(1), ElementsAre(Trial{.commit = 3, .run = 1, .runtime_of = 3}));
}

}  // namespace
}  // namespace bkm
