// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/golden_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"

namespace bkm {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

TEST(GoldenKeyTest, DependsOnNumbersOnly) {
  Probe other;
  other.attention = "varlen";
  other.precision = "fp32";
  other.threads = 2;
  other.input = "padded";
  other.micro_batches = 2;
  EXPECT_EQ(GoldenKey(other), GoldenKey(Probe()));
  other.optimizer.learning_rate = 3e-4;
  EXPECT_NE(GoldenKey(other), GoldenKey(Probe()));
  EXPECT_THAT(GoldenKey(other), MatchesRegex("[0-9a-f]{32}"));
}

// A change here makes every committed golden stale: raise the version that caused it and write the
// goldens again (golden/numeric/README.md).
TEST(GoldenKeyTest, IsStable) { EXPECT_EQ(GoldenKey(Probe()), "c8859882d098c74f7db12c98442fec74"); }

TEST(FloorKeyTest, DependsOnPrecisionMachineAndLibTorchToo) {
  const Probe probe;
  EXPECT_NE(FloorKey(probe, "bf16", "a", "1"), FloorKey(probe, "fp32", "a", "1"));
  EXPECT_NE(FloorKey(probe, "bf16", "a", "1"), FloorKey(probe, "bf16", "b", "1"));
  EXPECT_NE(FloorKey(probe, "bf16", "a", "1"), FloorKey(probe, "bf16", "a", "2"));
  EXPECT_NE(FloorKey(probe, "bf16", "a", "1"), GoldenKey(probe));
}

TEST(FloorKeyTest, DependsOnWhatALayoutAddsUpAndNotOnTheLayout) {
  const auto key = [](const char* layout) {
    return FloorKey(Probe{.layout = *ParseLayout(layout)}, "bf16", "a", "1");
  };
  EXPECT_NE(key("dp_shard=2"), key("1"));
  EXPECT_NE(key("dp_shard=2"), key("tp=2"));
  EXPECT_EQ(key("dp_shard=2"), key("dp_replicate=2"));
  EXPECT_EQ(key("pp=2"), key("1"));
}

class CpuFeaturesTest : public testing::Test {
 protected:
  absl::StatusOr<std::string> Of(absl::string_view cpuinfo) {
    const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "cpuinfo";
    EXPECT_TRUE(WriteFile(path, cpuinfo).ok());
    return CpuFeatures(path);
  }
};

TEST_F(CpuFeaturesTest, AreTheModelAndTheFlagsInAnyOrder) {
  const std::string one = *Of("model name\t: Some CPU\nflags\t\t: avx2 fma\n\nflags : other\n");
  EXPECT_THAT(one, MatchesRegex("Some CPU [0-9a-f]{16}"));
  EXPECT_EQ(one, *Of("processor\t: 0\nflags\t\t: fma avx2\nmodel name\t: Some CPU\n"));
  EXPECT_NE(one, *Of("model name\t: Some CPU\nflags\t\t: avx2 fma amx\n"));
  EXPECT_NE(one, *Of("model name\t: Other CPU\nflags\t\t: avx2 fma\n"));
}

TEST_F(CpuFeaturesTest, AreReadOnArmToo) {
  EXPECT_THAT(*Of("processor : 0\nFeatures : fp asimd\n"), HasSubstr("unknown processor "));
}

TEST_F(CpuFeaturesTest, AFileWithoutFlagsIsAnError) {
  EXPECT_THAT(std::string(Of("processor : 0\n").status().message()), HasSubstr("no line with"));
}

TEST_F(CpuFeaturesTest, ThisMachineHasSome) { EXPECT_TRUE(CpuFeatures().ok()); }

}  // namespace
}  // namespace bkm
