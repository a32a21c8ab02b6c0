// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// The short form of ci/flake-table.
#include "harness/search/flake_simulation.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

class FlakeSimulationTest : public ::testing::TestWithParam<bool> {};

TEST_P(FlakeSimulationTest, NamesTheRightCulpritAndIsNeverCertainOfAWrongOne) {
  for (const Noise& noise : FivePercent()) {
    const SimulationResult result =
        Simulate({.commits = 32, .flaky = GetParam(), .noise = noise, .count = 300, .seed = 7});
    EXPECT_GT(result.right(), 0.975) << noise.name;
    EXPECT_EQ(result.certain_wrong, 0) << noise.name;
    EXPECT_GT(result.real, 150) << noise.name;
    EXPECT_GT(result.chance, 90) << noise.name;
  }
}
INSTANTIATE_TEST_SUITE_P(Searches, FlakeSimulationTest, ::testing::Bool());

TEST(SimulationTest, WithoutNoiseOnlyTheNewerEndIsChance) {
  const SimulationResult result = Simulate({.noise = {.name = "none"}, .count = 100});
  EXPECT_EQ(result.right(), 1);
  EXPECT_EQ(result.named_wrong, 0);
}

TEST(SimulationTest, NoiseWithoutRepeatsWouldMissTheTarget) {
  // Half of all runs are chance: no search can be right, and the simulation shows it.
  const SimulationResult result =
      Simulate({.noise = {.name = "half", .fails_before = 0.5, .works_after = 0.5}, .count = 60});
  EXPECT_LT(result.right(), 0.975);
}

}  // namespace
}  // namespace bkm
