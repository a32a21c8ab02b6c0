// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/sensitivity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bkm {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(SensitivityTest, IsFourFloorsOfTheStepThatSeesMost) {
  const std::vector<GoldenStep> golden = {
      {.loss = 8,
       .total_norm = 3,
       .tensors = {{"a", {.gradient_norm = 1}}, {"expert", {.gradient_norm = 0}}}},
      {.loss = 4,
       .total_norm = 3,
       .tensors = {{"a", {.gradient_norm = 1}}, {"expert", {.gradient_norm = 1}}}}};
  const std::vector<FloorStep> floor = {
      {.reports = {.loss = 0.2, .log_probs = {.mean = 0.01, .max = 0.5}},
       .total_norm = 0.001,
       .gradients = {{"a", 0.02}, {"expert", 0.1}}},
      {.reports = {.loss = 0.2, .log_probs = {.mean = 0.02, .max = 0.25}},
       .total_norm = 0,
       .gradients = {{"a", 0.01}, {"expert", 0.3}}}};
  const Sensitivity least = SensitivityOf(golden, floor, 2, {});
  EXPECT_DOUBLE_EQ(least.log_probs_mean, 0.02);
  EXPECT_DOUBLE_EQ(least.log_probs_max, 1);
  EXPECT_DOUBLE_EQ(least.loss, 0.1);
  EXPECT_DOUBLE_EQ(least.total_norm, 1e-4);  // torch's own reduction
  // A gradient of zero has no relative error.
  EXPECT_THAT(least.gradients, UnorderedElementsAre(Pair("a", 0.04), Pair("expert", 1.2)));
  EXPECT_EQ(least.BlindGradients(), 1);
  EXPECT_THAT(least.WorstGradient(), Pair("expert", 1.2));
  EXPECT_DOUBLE_EQ(least.MedianGradient(), 1.2);
}

TEST(SensitivityTest, IsThatOfTheTypeInWhichACellReports) {
  const std::vector<GoldenStep> golden = {{.loss = 8}};
  const std::vector<FloorStep> floor = {
      {.reports = {.loss = 0.2, .log_probs = {.mean = 0.01, .max = 0.5}},
       .in_fp32 = ReportFloor{.loss = 0.02, .log_probs = {.mean = 0.005, .max = 0.25}}}};
  const Sensitivity fp32 = SensitivityOf(golden, floor, 2, {true, true});
  EXPECT_DOUBLE_EQ(fp32.log_probs_mean, 0.01);
  EXPECT_DOUBLE_EQ(fp32.log_probs_max, 1);
  EXPECT_DOUBLE_EQ(fp32.loss, 0.01);
  const Sensitivity bf16 = SensitivityOf(golden, floor, 2, {});
  EXPECT_DOUBLE_EQ(bf16.log_probs_mean, 0.02);
  EXPECT_DOUBLE_EQ(bf16.log_probs_max, 2);
  EXPECT_DOUBLE_EQ(bf16.loss, 0.1);
  const Sensitivity loss_in_bf16 = SensitivityOf(golden, floor, 2, {.fp32_log_probs = true});
  EXPECT_DOUBLE_EQ(loss_in_bf16.log_probs_mean, 0.01);
  EXPECT_DOUBLE_EQ(loss_in_bf16.loss, 0.1);
}

TEST(SensitivityTest, NothingComparedIsNothingSeen) {
  const Sensitivity least = SensitivityOf({}, {}, 4, {});
  EXPECT_EQ(least.loss, INFINITY);
  EXPECT_EQ(least.MedianGradient(), INFINITY);
  EXPECT_EQ(least.WorstGradient().first, "");
}

}  // namespace
}  // namespace bkm
