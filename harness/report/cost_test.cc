// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/report/cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bkm {
namespace {

using ::testing::HasSubstr;

TEST(CostTest, SumsStagesAndStepsAndDividesWhatTheMachineGave) {
  const Json observation = {{"stages",
                             {{{"stage", "import"}, {"seconds", 1.0}},
                              {{"stage", "step"}, {"seconds", 3.0}},
                              {{"stage", "golden"}}}},
                            {"steps", {{{"seconds", 1.5}}, {{"seconds", 0.5}}}}};
  CellCosts costs{.preload = 4};
  costs.Add("lock", observation);
  costs.Add("lock", observation);
  EXPECT_EQ(CostJson(costs, /*wall_s=*/6, /*slots=*/2),
            (Json{{"cells", 2},
                  {"runtimes", 1},
                  {"wall_s", 6.0},
                  {"slots", 2},
                  {"stages", {{"import", 2.0}, {"step", 6.0}, {"golden", 0.0}}},
                  {"own_s", 8.0},
                  {"preload_s", 4.0},
                  {"in_step_s", 4.0},
                  {"wall_over_own", 1.5},
                  {"wall_over_in_step", 3.0}}));
}

TEST(CostTest, WithoutCellsThereIsNoRatio) {
  EXPECT_TRUE(CostJson(CellCosts(), 1, 1)["wall_over_own"].is_null());
  EXPECT_THAT(CostText(CellCosts(), 1, 1), HasSubstr("time in steps:        -\n"));
}

}  // namespace
}  // namespace bkm
