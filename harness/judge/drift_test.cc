// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/drift.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace bkm {
namespace {

// Two documents of two tokens: positions 0 and 2 are judged.
using Steps = std::vector<StepTensors>;

const PackedBatch kDriftBatch = {{5, 2, 6, 2}, {0, 1, 0, 1}, {2, 2}};
const FloorStep kFloor = {.reports = {.loss = 0.01, .log_probs = {.mean = 0.01, .q99 = 0.02}},
                          .total_norm = 0.01,
                          .gradients = {{"w", 0.1}}};

Steps OneStep(double log_prob, double gradient) {
  return {{.log_probs = {log_prob, 0, -2, 0},
           .tensors = {{"w", {{gradient}, {1}, {1}, {std::abs(gradient), 1, 1}}}}}};
}

Drift Compare(const Steps& before, const Steps& now) {
  return *CompareRuns(before, now, std::span(&kFloor, 1), std::span(&kDriftBatch, 1));
}

TEST(DriftTest, SameBitsAreBitEqual) {
  EXPECT_EQ(Compare(OneStep(-1, 1), OneStep(-1, 1)), (Drift{DriftClass::kBitEqual, 0, ""}));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Compare(OneStep(nan, 1), OneStep(nan, 1)).kind, DriftClass::kBitEqual);
}

TEST(DriftTest, NegativeZeroDiffersInBitsButNotInDistance) {
  EXPECT_EQ(Compare(OneStep(0.0, 1), OneStep(-0.0, 1)), (Drift{DriftClass::kWithinFloor, 0, ""}));
}

TEST(DriftTest, FourFloorsOfTheMeanAreRoundingAndMoreIsReal) {
  const Drift rounding = Compare(OneStep(-1, 1), OneStep(-1.0625, 1));  // mean 0.03125
  EXPECT_EQ(rounding.kind, DriftClass::kWithinFloor);
  EXPECT_DOUBLE_EQ(rounding.multiple, 3.125);
  EXPECT_EQ(rounding.where, "log-probs in step 1");
  EXPECT_EQ(Compare(OneStep(-1, 1), OneStep(-1.125, 1)).kind, DriftClass::kReal);
}

TEST(DriftTest, GradientIsComparedInFloorsOfItsTensor) {
  EXPECT_EQ(Compare(OneStep(-1, 1), OneStep(-1, 1.25)).kind, DriftClass::kWithinFloor);
  const Drift drift = Compare(OneStep(-1, 1), OneStep(-1, 2));
  EXPECT_EQ(drift, (Drift{DriftClass::kReal, 10, "gradient of w in step 1"}));
}

TEST(DriftTest, GradientThatOneRunLacksIsComparedAsAShareOfAll) {
  const auto steps = [](double gradient) {
    Steps two = OneStep(-1, 4);
    two[0].tensors["expert"] = {{gradient}, {1}, {1}, {gradient, 1, 1}};
    return two;
  };
  FloorStep floor = kFloor;
  floor.shares["expert"] = 0.1;
  const auto compare = [&](double before, double now) {
    return *CompareRuns(steps(before), steps(now), std::span(&floor, 1),
                        std::span(&kDriftBatch, 1));
  };
  EXPECT_EQ(compare(0, 1), (Drift{DriftClass::kWithinFloor, 2.5, "gradient of expert in step 1"}));
  EXPECT_EQ(compare(0, 2).kind, DriftClass::kReal);
  EXPECT_EQ(compare(3, 0).kind, DriftClass::kReal);
}

TEST(DriftTest, DataOfOneRunOnlyIsRealDrift) {
  Steps less = OneStep(-1, 1);
  less[0].tensors.clear();
  EXPECT_EQ(Compare(OneStep(-1, 1), less).kind, DriftClass::kReal);
  EXPECT_EQ(Compare(less, OneStep(-1, 1)).kind, DriftClass::kReal);
  EXPECT_EQ(Compare(OneStep(-1, 1), Steps()).where, "the number of steps");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Compare(OneStep(-1, 1), OneStep(nan, 1)).kind, DriftClass::kReal);
  EXPECT_EQ(Compare(OneStep(-1, 1), OneStep(-1, nan)).kind, DriftClass::kReal);
}

TEST(DriftTest, PositionsWithoutALabelAreNotMeasured) {
  Steps now = OneStep(-1, 1);
  now[0].log_probs[1] = 7;
  EXPECT_EQ(Compare(OneStep(-1, 1), now), (Drift{DriftClass::kWithinFloor, 0, ""}));
}

TEST(DriftTest, FloorOfFewerStepsIsAnError) {
  EXPECT_FALSE(CompareRuns(OneStep(-1, 1), OneStep(-2, 1), {}, {}).ok());
}

}  // namespace
}  // namespace bkm
