// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/counter_generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

namespace bkm {
namespace {

using testing::ElementsAre;

// Known answers from the test vectors of Random123, the authors' own code (kat_vectors).
TEST(PhiloxTest, GivesTheKnownAnswersOfRandom123) {
  EXPECT_THAT(Philox4x32({0, 0, 0, 0}, {0, 0}),
              ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(
      Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
      ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(
      Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(CounterStreamTest, IsAFunctionOfSeedNameAndIndex) {
  std::set<uint64_t> values;
  for (const uint64_t seed : {1u, 2u}) {
    for (const char* name : {"a", "b", ""}) {
      for (const uint64_t index : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32}) {
        EXPECT_EQ(CounterStream(seed, name).Bits(index), CounterStream(seed, name).Bits(index));
        values.insert(CounterStream(seed, name).Bits(index));
      }
    }
  }
  EXPECT_EQ(values.size(), 2 * 3 * 3);
}

TEST(CounterStreamTest, BelowReachesEveryValueAndNoOther) {
  const CounterStream stream(7, "dice");
  std::set<uint64_t> seen;
  for (uint64_t i = 0; i < 200; ++i) seen.insert(stream.Below(6, i));
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(stream.Below(1, 0), 0);
}

TEST(CounterStreamTest, NormalLikeHasTheMomentsOfANormal) {
  const CounterStream stream(1, "weights");
  constexpr int kCount = 200000;
  double sum = 0, squares = 0, fourth = 0, largest = 0;
  for (int i = 0; i < kCount; ++i) {
    const double x = stream.NormalLike(2.0, i) / 2.0;
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    largest = std::max(largest, std::abs(x));
  }
  EXPECT_NEAR(sum / kCount, 0, 0.01);
  EXPECT_NEAR(squares / kCount, 1, 0.01);
  EXPECT_NEAR(fourth / kCount, 3 - 1.2 / 8, 0.05);  // Irwin-Hall of eight
  EXPECT_GT(largest, 3.5);
  EXPECT_LT(largest, 4.9);
}

}  // namespace
}  // namespace bkm
