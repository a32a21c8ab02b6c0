// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/api_map.h"

#include <gmock/gmock.h>

#include "harness/apicheck/testing_map.h"

namespace bkm {
namespace {

TEST(ApiMapTest, ComesBackFromItsJson) {
  const ApiMap map = ASmallMap();
  const auto back = ApiMapFromJson(ToJson(map), "map.json");
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->plane, map.plane);
  EXPECT_EQ(back->engines, map.engines);
  EXPECT_EQ(back->libraries, map.libraries);
  EXPECT_EQ(back->cells, map.cells);
}

TEST(ApiMapTest, JsonSaysWhichBandsWork) {
  EXPECT_EQ(ToJson(ASmallMap())["bands"],
            (Json{{{"rows", {0, 1}},
                   {"columns", {1, 1}},
                   {"working", Json{{1, 1}}},
                   {"areas", Json{{{"rows", {0, 1}}, {"working", Json{{1, 1}}}}}}}}));
}

TEST(ApiMapTest, OtherVerdictsThanOkFailOrSayNothing) {
  EXPECT_EQ((MapCell{.verdict = "ok"}.outcome()), RunOutcome::kWorks);
  EXPECT_EQ((MapCell{.verdict = "wrong"}.outcome()), RunOutcome::kFails);
  EXPECT_EQ((MapCell{.verdict = "refused"}.outcome()), RunOutcome::kFails);
  EXPECT_EQ((MapCell{.verdict = "spurious"}.outcome()), RunOutcome::kSaysNothing);
}

TEST(ApiMapTest, PlaneThatDoesNotFitItsAxesIsRefused) {
  Json json = ToJson(ASmallMap());
  json["engines"].erase(0);
  EXPECT_EQ(ApiMapFromJson(json, "map.json").status().message(),
            "map.json: the plane has 2 rows and there are 1 engines: make the map again");
}

TEST(ApiMapTest, RowsAndCellsThatDoNotFitTheLibrariesAreRefused) {
  Json json = ToJson(ASmallMap());
  json["libraries"].erase(0);
  EXPECT_EQ(ApiMapFromJson(json, "map.json").status().message(),
            "map.json: a row of the plane has 2 pairs and there are 1 libraries: make the map "
            "again");
  json = ToJson(ASmallMap());
  json["cells"][0]["column"] = 2;
  EXPECT_EQ(ApiMapFromJson(json, "map.json").status().message(),
            "map.json: the cell x lies outside of the plane: make the map again");
}

}  // namespace
}  // namespace bkm
