// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/map_answer.h"

#include <gmock/gmock.h>

namespace bkm {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Two engines that ask the same of three libraries, of which the first lacks it. The newest engine
// ran with the two others.
ApiMap AMap() {
  ApiMap map{.engine_kind = "verl-torchtitan",
             .engine_source = "verl",
             .library_source = "torchtitan",
             .since = "2026-02-01",
             .attention = "flex",
             .model = "qwen3",
             .engines = {{"e1", "2026-02-01", "", ""}, {"e2", "2026-02-02", "", "v1"}},
             .libraries = {{"l1", "2026-02-01", "", "v0"},
                           {"l2", "2026-03-01", "", ""},
                           {"l3", "2026-03-02", "", ""}},
             .plane = {{PairGrade::kImport, PairGrade::kNothing, PairGrade::kNothing},
                       {PairGrade::kImport, PairGrade::kNothing, PairGrade::kNothing}}};
  for (const int library : {1, 2}) {
    const PlanePoint point{1, library};
    map.cells[point] = {.point = point, .verdict = "ok", .stage = "golden", .id = "x"};
  }
  return map;
}

TEST(MapAnswerTest, ThePairThatRanIsToldFromOneThatOnlyAsksTheSame) {
  const ApiMap map = AMap();

  const MapAnswer newest = AskMap(map, 1, /*of_engine=*/true);
  ASSERT_THAT(newest.stretches, SizeIs(1));
  EXPECT_EQ(newest.stretches[0].first, 1);
  EXPECT_EQ(newest.stretches[0].last, 2);
  EXPECT_EQ(newest.stretches[0].first_proof, MapProof::kRan);
  EXPECT_EQ(newest.stretches[0].ran, 2);

  const MapAnswer oldest = AskMap(map, 0, /*of_engine=*/true);
  ASSERT_THAT(oldest.stretches, SizeIs(1));
  EXPECT_EQ(oldest.stretches[0].last_proof, MapProof::kSameAsks);
  EXPECT_EQ(oldest.stretches[0].ran, 2) << "the newest engine's runs count for a library";
}

TEST(MapAnswerTest, OfALibraryOnlyRunsOfThePairItselfCount) {
  const ApiMap map = AMap();
  const MapAnswer answer = AskMap(map, 2, /*of_engine=*/false);
  ASSERT_THAT(answer.stretches, SizeIs(1));
  EXPECT_EQ(answer.stretches[0].ran, 1);
  EXPECT_EQ(ToJson(answer)["works_with"][0]["proven_with"], "e2");
}

TEST(MapAnswerTest, TheNearestReleaseNeedNotWork) {
  const ApiMap map = AMap();
  const MapAnswer answer = AskMap(map, 1, /*of_engine=*/true);
  EXPECT_EQ(answer.nearest_release, 0);
  EXPECT_FALSE(answer.release_works);
  EXPECT_EQ(ToJson(answer)["nearest_release"]["works"], false);
  EXPECT_EQ(AskMap(map, 2, /*of_engine=*/false).nearest_release, 1);
  EXPECT_TRUE(AskMap(map, 2, /*of_engine=*/false).release_works);
}

TEST(MapAnswerTest, AVersionWithoutAPartnerHasNoStretchAndSaysSince) {
  const ApiMap map = AMap();
  const MapAnswer answer = AskMap(map, 0, /*of_engine=*/false);
  EXPECT_THAT(answer.stretches, IsEmpty());
  EXPECT_EQ(ToJson(answer)["nearest_release"], Json());
  EXPECT_THAT(ToText(answer), HasSubstr("since 2026-02-01"));
}

}  // namespace
}  // namespace bkm
