// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/report/rank_story.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

TEST(RankStoryTest, OneRankHasNoStory) { EXPECT_EQ(RankStory(Json::object()), ""); }

TEST(RankStoryTest, RanksDifferencesAndCollectivesAreTold) {
  const Json collective = {{"op", "all_reduce"}, {"reduce", "avg"}, {"ranks", 2},
                           {"dtype", "float32"}, {"calls", 3},      {"elements", 270},
                           {"stage", "backward"}};
  Json own = collective;
  own["stage"] = "witness";
  const Json observation = {
      {"ranks",
       {{{"rank", 0},
         {"ended", "done"},
         {"stage", "step"},
         {"documents", {{{"first", 0}, {"count", 3}}, {{"first", 0}, {"count", 1}}}},
         {"collectives", {collective, own}}},
        {{"rank", 1}, {"ended", "waiting"}, {"waits", "in barrier at x.py:3"}, {"stage", "load"}}}},
      {"rank_differences", {{{"when", "step 1"}, {"name", "grad/a"}, {"rank", 1}}}}};
  EXPECT_EQ(RankStory(observation),
            "  rank 0: done at step, documents 0 to 2, then 0\n"
            "  rank 1: waiting in barrier at x.py:3 at load\n"
            "  step 1: rank 1 has another grad/a\n"
            "  collectives of the first rank:\n"
            "    all_reduce avg over 2 ranks, float32: 3 calls, 270 elements, in backward\n");
}

TEST(RankStoryTest, WhatIsNoRankIsNoFault) {
  EXPECT_EQ(RankStory({{"ranks", {7, "x", nullptr}}, {"rank_differences", {1}}}).substr(0, 18),
            "  rank 0: not seen");
}

}  // namespace
}  // namespace bkm
