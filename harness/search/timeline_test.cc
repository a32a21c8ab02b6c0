// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/search/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/search/search_world.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TimelineResult TimelineOf(const std::string& letters, int every, int slots = 1, int seed = 0,
                          bool confirm = false, int* asked = nullptr) {
  const CommitGraph graph(Line(static_cast<int>(letters.size())));
  Timeline timeline(graph, {.late = graph.size() - 1, .every = every, .confirm = confirm});
  SearchWorld world(Letters(letters), slots, seed);
  world.Run(timeline);
  if (asked) *asked = static_cast<int>(world.asked.size());
  return timeline.result();
}

std::vector<std::string> Signatures(const TimelineResult& result) {
  std::vector<std::string> signatures;
  for (const Stretch& stretch : result.stretches) signatures.push_back(stretch.signature);
  return signatures;
}

TEST(TimelineTest, FindsEveryBoundaryOfStretchesThatAreLongEnough) {
  //                            0    5    10   15   20   25
  const std::string letters = "GGGGGBBBBBBWWWWWWWWGGGGGGG";
  for (int slots = 1; slots <= 4; ++slots) {
    const TimelineResult result = TimelineOf(letters, 5, slots, slots);
    EXPECT_THAT(Signatures(result), ElementsAre("ok", "broken at import, missing-module",
                                                "wrong at golden, log-probs-off", "ok"));
    ASSERT_EQ(result.boundaries.size(), 3u);
    EXPECT_EQ(result.boundaries[0].before, 4);
    EXPECT_THAT(result.boundaries[0].candidates, ElementsAre(5));
    EXPECT_THAT(result.boundaries[1].candidates, ElementsAre(11));
    EXPECT_THAT(result.boundaries[2].candidates, ElementsAre(19));
    EXPECT_EQ(result.stretches[1].commits, 6);
    EXPECT_LE(result.resolution, 4);
  }
}

TEST(TimelineTest, AShortStretchBetweenEqualEndsCanHideAndTheResolutionSaysHowLong) {
  const TimelineResult result = TimelineOf("GGGGGGBBGGGGGGGGG", 8);
  EXPECT_THAT(Signatures(result), ElementsAre("ok"));
  EXPECT_EQ(result.resolution, 7);
  EXPECT_THAT(TimelineOf("GGGGGGBBGGGGGGGGG", 2).boundaries.size(), 2u);
}

TEST(TimelineTest, WithEveryCommitMeasuredNothingHides) {
  const TimelineResult result = TimelineOf("GBGBG", 1);
  EXPECT_EQ(result.boundaries.size(), 4u);
  EXPECT_EQ(result.resolution, 0);
}

TEST(TimelineTest, CommitsThatCannotBeJudgedAreCandidatesOfTheirBoundary) {
  const TimelineResult result = TimelineOf("GGGGsssBBBB", 5);
  ASSERT_EQ(result.boundaries.size(), 1u);
  EXPECT_EQ(result.boundaries[0].before, 3);
  EXPECT_EQ(result.boundaries[0].after, 7);
  EXPECT_THAT(result.boundaries[0].candidates, ElementsAre(4, 5, 6, 7));
}

TEST(TimelineTest, CutsEachBoundaryInHalves) {
  int asked = 0;
  TimelineOf(std::string(600, 'G') + std::string(424, 'B'), 512, 1, 0, false, &asked);
  // Three samples and ten halvings of the 511 commits between.
  EXPECT_LE(asked, 3 + 10);
}

TEST(TimelineTest, ConfirmsBothSidesWhenAsked) {
  const TimelineResult result = TimelineOf("GGGGBBBB", 4, 2, 3, /*confirm=*/true);
  EXPECT_EQ(result.boundaries[0].confirmed, true);
  EXPECT_EQ(TimelineOf("GGGGBBBB", 4).boundaries[0].confirmed, std::nullopt);
}

TEST(TimelineTest, CommitsOfEqualContentAreMeasuredOnce) {
  std::vector<GraphCommit> commits = Line(64);
  for (int i = 0; i < 64; ++i) commits[i].content = i < 40 ? "old" : "new";
  const CommitGraph graph(commits);
  Timeline timeline(graph, {.late = 63, .every = 1});
  SearchWorld world([](const Trial& t) { return t.commit < 40 ? Ok() : Broken(); });
  world.Run(timeline);
  EXPECT_EQ(world.asked.size(), 2u);
  EXPECT_THAT(timeline.result().boundaries[0].candidates, ElementsAre(40));
}

TEST(TimelineTest, FollowsTheMainline) {
  // 0 - 1 - - - 4    2 and 3 are a branch that was merged
  std::vector<GraphCommit> commits = Line(5);
  commits[2].parents = {0};
  commits[4].parents = {1, 3};
  const CommitGraph graph(commits);
  Timeline timeline(graph, {.late = 4, .every = 1});
  SearchWorld world(Letters("GGBBB"));
  world.Run(timeline);
  ASSERT_EQ(timeline.result().boundaries.size(), 1u);
  EXPECT_EQ(timeline.result().boundaries[0].after, 4);
}

TEST(TimelineTest, GoesOnFromWhatWasMeasuredBefore) {
  const CommitGraph graph(Line(40));
  const std::string letters = std::string(13, 'G') + std::string(9, 'B') + std::string(18, 'G');
  SearchWorld world(Letters(letters), 2, 5);
  Timeline first(graph, {.late = 39, .every = 4, .confirm = true});
  world.Run(first);
  Timeline second(graph, {.late = 39, .every = 4, .confirm = true});
  world.Repeat(second);
  EXPECT_TRUE(second.done());
  EXPECT_THAT(second.Wanted(9), IsEmpty());
  EXPECT_EQ(second.result().boundaries.size(), 2u);
}

}  // namespace
}  // namespace bkm
