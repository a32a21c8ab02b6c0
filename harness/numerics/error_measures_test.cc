// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/error_measures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace bkm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(ErrorMeasuresTest, AbsoluteErrorsAreElementByElement) {
  EXPECT_THAT(*AbsoluteErrors({{1.0, -2.0, 0.5}}, {{1.5, -2.0, -0.5}}), ElementsAre(0.5, 0.0, 1.0));
}

TEST(ErrorMeasuresTest, MinusZeroEqualsZero) {
  EXPECT_THAT(*AbsoluteErrors({{-0.0}}, {{0.0}}), ElementsAre(0.0));
  EXPECT_EQ(*RelativeError(-0.0, 0.0), 0.0);
}

TEST(ErrorMeasuresTest, ObservedNaNAndInfinityAreInfinitelyFarAway) {
  EXPECT_THAT(*AbsoluteErrors({{kNaN, kInfinity, -kInfinity, 1}}, {{0, 0, 0, 1}}),
              ElementsAre(kInfinity, kInfinity, kInfinity, 0.0));
  EXPECT_EQ(*RelativeError(kNaN, 1.0), kInfinity);
  EXPECT_EQ(*RelativeNormError({{kNaN, 1.0}}, {{1.0, 1.0}}), kInfinity);
  EXPECT_EQ(*RelativeNormError({{kInfinity}}, {{0.0}}), kInfinity);
  EXPECT_EQ(*CosineGap({{kInfinity, 1.0}}, {{1.0, 1.0}}), 2.0);
}

TEST(ErrorMeasuresTest, AGoldenThatIsNotFiniteIsAnErrorEvenIfBothSidesAgree) {
  for (const double bad : {kNaN, kInfinity}) {
    EXPECT_THAT(std::string(AbsoluteErrors({{bad}}, {{bad}}).status().message()),
                HasSubstr("golden is not finite"));
    EXPECT_FALSE(RelativeError(bad, bad).ok());
    EXPECT_FALSE(RelativeNormError({{bad}}, {{bad}}).ok());
    EXPECT_FALSE(CosineGap({{bad}}, {{bad}}).ok());
  }
}

TEST(ErrorMeasuresTest, NothingAndDifferentSizesAreErrors) {
  EXPECT_EQ(AbsoluteErrors({}, {}).status().message(), "there is nothing to compare");
  EXPECT_EQ(RelativeNormError({{1.0}}, {{1.0, 2.0}}).status().message(),
            "the observation has 1 elements, the golden 2");
  EXPECT_FALSE(CosineGap({}, {}).ok());
}

TEST(ErrorMeasuresTest, RelativeNormErrorIsRelativeToTheGolden) {
  EXPECT_DOUBLE_EQ(*RelativeNormError({{3.0, 8.0}}, {{3.0, 4.0}}), 0.8);
  EXPECT_DOUBLE_EQ(*RelativeError(1.5, -1.0), 2.5);
}

TEST(ErrorMeasuresTest, AGoldenOfZeroAcceptsOnlyZero) {
  EXPECT_EQ(*RelativeNormError({{0.0, 0.0}}, {{0.0, 0.0}}), 0.0);
  EXPECT_EQ(*RelativeNormError({{0.0, 1e-300}}, {{0.0, 0.0}}), kInfinity);
}

TEST(ErrorMeasuresTest, NormsNeitherUnderflowNorOverflow) {
  EXPECT_DOUBLE_EQ(*RelativeNormError({{3e-300, 8e-300}}, {{3e-300, 4e-300}}), 0.8);
  EXPECT_DOUBLE_EQ(*RelativeNormError({{3e300, 8e300}}, {{3e300, 4e300}}), 0.8);
}

TEST(ErrorMeasuresTest, CosineGapIsBlindToScaleAndExactForSmallAngles) {
  EXPECT_NEAR(*CosineGap({{10.0, 20.0}}, {{1.0, 2.0}}), 0.0, 1e-30);
  EXPECT_DOUBLE_EQ(*CosineGap({{-1.0, -2.0}}, {{1.0, 2.0}}), 2.0);
  EXPECT_DOUBLE_EQ(*CosineGap({{0.0, 2.0}}, {{1.0, 0.0}}), 1.0);
  EXPECT_NEAR(*CosineGap({{1.0, 1e-9}}, {{1.0, 0.0}}), 5e-19, 1e-24);
}

TEST(ErrorMeasuresTest, CosineGapOfZeroVectors) {
  EXPECT_EQ(*CosineGap({{0.0}}, {{0.0}}), 0.0);
  EXPECT_EQ(*CosineGap({{1.0}}, {{0.0}}), 1.0);
  EXPECT_EQ(*CosineGap({{0.0}}, {{1.0}}), 1.0);
}

TEST(ErrorMeasuresTest, QuantileIsTheNearestRank) {
  const std::vector<double> errors = {4, 1, 3, 2};
  EXPECT_EQ(Quantile(errors, 0.0), 1);
  EXPECT_EQ(Quantile(errors, 0.25), 1);
  EXPECT_EQ(Quantile(errors, 0.26), 2);
  EXPECT_EQ(Quantile(errors, 0.99), 4);
  EXPECT_EQ(Quantile({1, kInfinity}, 1.0), kInfinity);
}

TEST(ErrorMeasuresTest, OneInfinityMakesTheMeanInfinite) {
  EXPECT_EQ(Mean(std::vector<double>{1, 2, 6}), 3);
  EXPECT_EQ(Mean(std::vector<double>{1, kInfinity}), kInfinity);
}

TEST(ErrorMeasuresTest, HalfUlpIsHalfTheGapToTheNextNumber) {
  for (const float value : {1.0f, 7.6f, -8.0f, 1e-30f}) {
    const float size = std::abs(value);
    EXPECT_EQ(HalfUlp(value, 23), (std::nextafter(size, 1e30f) - size) / 2.0);
  }
  EXPECT_EQ(HalfUlp(-7.6, 7), 0x1p-6);  // bf16 steps by 1/32 from 4 to 8
  EXPECT_EQ(HalfUlp(0.0, 7), 0.0);
}

TEST(ErrorMeasuresTest, ATypeHasANumberExactlyWhateverItsExponent) {
  EXPECT_TRUE(IsExact(-7.53125, 7));
  EXPECT_TRUE(IsExact(0x1.02p-40, 7));
  EXPECT_FALSE(IsExact(7.515625, 7));  // between two of bf16
  EXPECT_TRUE(IsExact(0.1f, 23));
  EXPECT_FALSE(IsExact(0.1, 23));
  EXPECT_TRUE(IsExact(0, 7));
}

}  // namespace
}  // namespace bkm
