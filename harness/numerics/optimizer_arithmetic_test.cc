// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/optimizer_arithmetic.h"

#include <gtest/gtest.h>

#include <cmath>

namespace bkm {
namespace {

void ExpectClose(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], 1e-15 * (1 + std::abs(expected[i]))) << "element " << i;
  }
}

// The expected numbers come from torch.optim.AdamW (torch 2.13.0, fp64).
TEST(AdamWStepTest, AgreesWithTorchOverThreeSteps) {
  const OptimizerSettings settings = {
      .learning_rate = 1e-2, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .weight_decay = 0.1};
  std::vector<double> parameter = {0.5, -2.0, 0.0, 1e-3};
  AdamWMoments moments;
  AdamWStep(settings, {{0.1, -0.2, 1e-9, 3.0}}, moments, parameter);
  ExpectClose(parameter,
              {0.4895000009999999, -1.9880000005, -0.000909090909090909, -0.009000999966666666});
  AdamWStep(settings, {{-0.5, 0.0, 0.0, 1.0}}, moments, parameter);
  ExpectClose(parameter, {0.49498159134292946, -1.979296199502683, -0.001350657018608929,
                          -0.017718453537577065});
  AdamWStep(settings, {{0.3, 0.25, -1e-8, 0.0}}, moments, parameter);
  ExpectClose(parameter, {0.49523119136250093, -1.9790717123984312, 0.0007928038177756271,
                          -0.024461659046073607});
}

TEST(AdamWStepTest, ASampleOfATensorIsUpdatedAsTheWholeTensor) {
  const OptimizerSettings settings;
  std::vector<double> whole = {0.5, -2.0, 3.0};
  std::vector<double> sample = {3.0};
  AdamWMoments of_whole, of_sample;
  for (int step = 0; step < 2; ++step) {
    AdamWStep(settings, {{0.1, 0.2, 0.3 + step}}, of_whole, whole);
    AdamWStep(settings, {{0.3 + step}}, of_sample, sample);
  }
  EXPECT_EQ(sample[0], whole[2]);
}

TEST(ClipCoefficientTest, AgreesWithTorch) {
  EXPECT_DOUBLE_EQ(ClipCoefficient(5.0, 1.0), 0.199999960000008);
  EXPECT_EQ(ClipCoefficient(0.5, 1.0), 1.0);
  EXPECT_EQ(ClipCoefficient(0.0, 1.0), 1.0);
}

TEST(TotalNormTest, IsTheNormOfTheNorms) {
  EXPECT_EQ(TotalNorm(std::vector<double>{3.0, 4.0}), 5.0);
  EXPECT_EQ(TotalNorm({}), 0.0);
}

}  // namespace
}  // namespace bkm
