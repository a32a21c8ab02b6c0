// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/search/flaky_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/search/search_world.h"

namespace bkm {
namespace {

using ::testing::HasSubstr;

// Broken with a probability that changes at the culprit. The outcome is a hash of the trial, so a
// repeated search sees the same outcomes.
std::function<Outcome(const Trial&)> Flaky(int culprit, double before, double after, int seed) {
  return [=](const Trial& trial) {
    std::seed_seq sequence{seed, trial.commit, trial.run};
    std::mt19937 random(sequence);
    const double chance = std::uniform_real_distribution<>()(random);
    return chance < (trial.commit < culprit ? before : after) ? Broken() : Ok();
  };
}

FlakyResult SearchFlaky(const std::function<Outcome(const Trial&)>& answer, int slots, int seed) {
  const CommitGraph graph(Line(64));
  FlakySearch search(graph, {.late = 63, .early = 0});
  SearchWorld world(answer, slots, seed);
  world.Run(search);
  return search.result();
}

TEST(FlakySearchTest, NamesTheCulpritAsOftenAsItsConfidenceSays) {
  int found = 0, right = 0, runs = 0;
  constexpr int kTrials = 100;
  for (int seed = 1; seed <= kTrials; ++seed) {
    const int culprit = 1 + seed * 7 % 63;
    const FlakyResult result = SearchFlaky(Flaky(culprit, 0.15, 1, seed), 1 + seed % 3, seed);
    found += result.status == SearchStatus::kFound;
    right += result.culprit == culprit;
    runs += result.runs;
  }
  EXPECT_GE(found, 95);
  EXPECT_GE(right, found - 4);
  EXPECT_LE(runs / kTrials, 45);
}

TEST(FlakySearchTest, ACulpritThatOnlyMakesItFlakyIsFoundToo) {
  int right = 0;
  for (int seed = 1; seed <= 40; ++seed) {
    const FlakyResult result = SearchFlaky(Flaky(40, 0.0, 0.6, seed), 2, seed);
    right += result.culprit == 40;
  }
  EXPECT_GE(right, 36);
}

TEST(FlakySearchTest, WhereBothEndsAreEquallyFlakyThereIsNoCulprit) {
  int none = 0, named = 0;
  for (int seed = 1; seed <= 40; ++seed) {
    const FlakyResult result = SearchFlaky(Flaky(0, 0.3, 0.3, seed), 2, seed);
    none += result.status == SearchStatus::kNone;
    named += result.status == SearchStatus::kFound;
  }
  EXPECT_LE(named, 1);
  EXPECT_GE(none, 30);
}

TEST(FlakySearchTest, WithAKnownRateAnEndThatWasRedByChanceHasNoCulprit) {
  const CommitGraph graph(Line(16));
  FlakySearch search(graph, {.late = 15, .early = 0, .flake_rate = 0.3});
  // Bad in three of the first eight runs of the end, and never again.
  SearchWorld world([](const Trial& p) { return p.commit == 15 && p.run <= 4 ? Broken() : Ok(); });
  world.Run(search);
  EXPECT_EQ(search.result().status, SearchStatus::kNone);
  EXPECT_THAT(search.result().why, HasSubstr("no culprit"));
}

TEST(FlakySearchTest, ACellThatIsNotFlakyIsFoundWithItsConfidenceStated) {
  const FlakyResult result = SearchFlaky(Flaky(23, 0, 1, 1), 2, 1);
  EXPECT_EQ(result.status, SearchStatus::kFound);
  EXPECT_EQ(result.culprit, 23);
  EXPECT_GE(result.confidence, 0.99);
}

TEST(FlakySearchTest, GivesUpAfterSoManyRuns) {
  const CommitGraph graph(Line(64));
  FlakySearch search(graph, {.late = 63, .early = 0, .max_runs = 18});
  SearchWorld world(Flaky(40, 0.1, 0.9, 3));
  world.Run(search);
  EXPECT_EQ(search.result().status, SearchStatus::kUnstable);
  EXPECT_THAT(search.result().why, HasSubstr("after 18 runs no answer is more likely than "));
}

TEST(FlakySearchTest, ACommitThatChangesNothingIsNoCandidate) {
  std::vector<GraphCommit> commits = Line(16);
  for (int i = 0; i < 16; ++i) commits[i].content = i < 8 ? "old" : "new";
  const CommitGraph graph(commits);
  FlakySearch search(graph, {.late = 15, .early = 0});
  SearchWorld world(Flaky(8, 0.1, 0.9, 5));
  world.Run(search);
  EXPECT_EQ(search.result().culprit, 8);
  EXPECT_EQ(search.result().likely.size(), 1u);
}

TEST(FlakySearchTest, GoesOnFromWhatWasMeasuredBefore) {
  const CommitGraph graph(Line(64));
  SearchWorld world(Flaky(40, 0.1, 0.9, 9), 3, 2);
  FlakySearch first(graph, {.late = 63, .early = 0});
  world.Run(first);
  FlakySearch second(graph, {.late = 63, .early = 0});
  world.Repeat(second);
  EXPECT_TRUE(second.done());
  EXPECT_EQ(second.result().culprit, first.result().culprit);
}

}  // namespace
}  // namespace bkm
