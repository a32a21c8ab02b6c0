// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/cell_cost.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

TEST(CellCostTest, TheFirstStepWarmsUp) {
  const Json observation = {
      {"usage", {{"wall_s", 9.5}, {"max_rss_mib", 950}}},
      {"steps", {{{"seconds", 7.0}}, {{"seconds", 0.5}}, {{"seconds", 0.75}}, {{"seconds", 2.0}}}}};
  EXPECT_EQ(CostOf(observation), (CellCost{9.5, 0.75, 950}));
  Json three = observation;
  three["steps"].erase(3);
  EXPECT_EQ(CostOf(three).step_seconds, 0.625);
}

TEST(CellCostTest, WhatIsMissingOrNonsenseIsUnknown) {
  EXPECT_EQ(CostOf(Json::object()), CellCost());
  EXPECT_EQ(CostOf({{"usage", 3}, {"steps", {{{"seconds", 1.0}}}}}), CellCost()) << "one step";
  EXPECT_EQ(CostOf({{"steps", {1, {{"seconds", nullptr}}}}}), CellCost());
  EXPECT_EQ(CostOf({{"steps", {1, {{"seconds", 1.0}}, "x"}}}), CellCost());
  EXPECT_EQ(CostOf({{"usage", {{"wall_s", -1}}}}), CellCost());
}

}  // namespace
}  // namespace bkm
