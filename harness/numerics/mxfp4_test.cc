// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/mxfp4.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace bkm {
namespace {

using testing::HasSubstr;

std::vector<float> Block(std::vector<float> values) {
  values.resize(kMxfp4Block);
  return values;
}

std::vector<float> Rounded(const std::vector<float>& values) {
  const Mxfp4 packed = ToMxfp4(values);
  return *FromMxfp4(packed.blocks, packed.scales);
}

TEST(Mxfp4Test, ValuesOfTheFormatAreKept) {
  const std::vector<float> exact =
      Block({6, -6, 4, -4, 3, -3, 2, -2, 1.5, -1.5, 1, -1, 0.5, -0.5, 0});
  EXPECT_EQ(Rounded(exact), exact);
  std::vector<float> small = exact;
  for (float& value : small) value = std::ldexp(value, -20);
  EXPECT_EQ(Rounded(small), small);
  EXPECT_EQ(Rounded(Block({})), Block({}));
}

TEST(Mxfp4Test, TheFirstValueIsInTheLowBitsAndTheExponentIsBiased) {
  const Mxfp4 packed = ToMxfp4(Block({1, -6}));  // codes 2 and 15, exponent 0
  EXPECT_EQ(static_cast<uint8_t>(packed.blocks[0]), 0xF2);
  EXPECT_EQ(packed.blocks.size(), 16);
  EXPECT_EQ(packed.scales, std::string(1, 127));
  EXPECT_EQ(ToMxfp4(Block({24})).scales, std::string(1, static_cast<char>(129)));
}

TEST(Mxfp4Test, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(Rounded(Block({4, 0.24, 0.25, 0.26, 0.75, 1.25, 1.75, 2.5, 3.5, -2.5})),
            Block({4, 0, 0, 0.5, 1, 1, 2, 2, 4, -2}));
}

// The exponent of 7.9 is that of 4, and nothing above 6 has it.
TEST(Mxfp4Test, WhatIsTooLargeForItsBlockIsTheLargestValue) {
  EXPECT_EQ(Rounded(Block({7.9, -5.1})), Block({6, -6}));
}

TEST(Mxfp4Test, EachBlockHasItsOwnExponent) {
  std::vector<float> two = Block({6});
  const std::vector<float> other = Block({0.0078125, 0.001953125});
  two.insert(two.end(), other.begin(), other.end());
  EXPECT_EQ(Rounded(two), two);
}

TEST(Mxfp4Test, DamagedContentIsAnError) {
  EXPECT_THAT(std::string(FromMxfp4(std::string(15, 0), "a").status().message()),
              HasSubstr("15 bytes of blocks and 1 scales"));
  EXPECT_THAT(std::string(FromMxfp4(std::string(16, 0), "\xFF").status().message()),
              HasSubstr("not a number"));
}

}  // namespace
}  // namespace bkm
