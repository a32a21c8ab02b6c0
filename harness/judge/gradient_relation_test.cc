// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/gradient_relation.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

constexpr char kNorm[] = "model.layers.0.input_layernorm.weight";
constexpr char kQuery[] = "model.layers.0.self_attn.q_proj.weight";
constexpr char kInput[] = "model.embed_tokens.weight";

// Three tensors with gradients that are `factors` times the right ones.
class GradientRelationTest : public ::testing::Test {
 protected:
  GradientRelationTest() {
    for (const char* name : {kNorm, kQuery, kInput}) {
      golden_[name].gradient = {0.1, -0.2, 0.3, 0.05};
      seen_[name].gradient = golden_[name].gradient;
      floor_[name] = 0.001;
    }
  }

  void Scale(const char* name, double factor) {
    for (double& value : seen_[name].gradient) value *= factor;
  }

  std::string Describe(const char* layout, double seen_norm = 0.5) {
    return DescribeFactor({.seen = seen_,
                           .seen_norm = seen_norm,
                           .golden = golden_,
                           .golden_norm = 0.5,
                           .clip_norm = 1,
                           .floor = floor_},
                          *ParseLayout(layout))
        .value_or("");
  }

  std::map<std::string, SampledTensor> seen_;
  std::map<std::string, GoldenTensor> golden_;
  std::map<std::string, double> floor_;
};

TEST_F(GradientRelationTest, RightGradientsHaveNoFactor) { EXPECT_EQ(Describe("dp_shard=2"), ""); }

TEST_F(GradientRelationTest, OneFactorOverAllTensorsIsNamedWithTheGroupThatExplainsIt) {
  for (const char* name : {kNorm, kQuery, kInput}) Scale(name, 2);
  EXPECT_EQ(Describe("dp_replicate=2"),
            "gradients are 2.000 times the golden in every tensor: summed, not averaged, over a "
            "group of 2");
  EXPECT_EQ(Describe("1"), "gradients are 2.000 times the golden in every tensor");
}

TEST_F(GradientRelationTest, AFactorThatClippingHidesShowsInTheNorm) {
  // Clipped to 1 from a norm of 4, where the right one is 0.5: the samples are 8 / 4 times.
  for (const char* name : {kNorm, kQuery, kInput}) Scale(name, 2);
  EXPECT_EQ(Describe("dp_shard=4+tp=2", 4),
            "gradients are 8.000 times the golden in every tensor: summed, not averaged, over a "
            "group of 8");
}

TEST_F(GradientRelationTest, AFactorOfOneKindOfParametersNamesIt) {
  Scale(kNorm, 0.5);
  EXPECT_EQ(Describe("tp=2"),
            "gradients are 0.500 times the golden in norms: averaged once too often over a group "
            "of 2");
}

TEST_F(GradientRelationTest, AnotherDirectionOrTwoFactorsSayNothing) {
  seen_[kQuery].gradient = {0.3, 0.2, -0.1, 0.05};
  EXPECT_EQ(Describe("tp=2"), "");
  seen_[kQuery].gradient = golden_[kQuery].gradient;
  Scale(kQuery, 2);
  Scale(kNorm, 3);
  EXPECT_EQ(Describe("tp=2"), "");
}

TEST_F(GradientRelationTest, ATensorOfAnotherDirectionIsNotAmongTheScaledOnes) {
  Scale(kNorm, 0);
  seen_[kQuery].gradient = {0.3, 0.2, -0.1, 0.05};
  EXPECT_EQ(Describe("1"), "gradients are 0.000 times the golden in norms");
  seen_[kInput].gradient = {0.3, 0.2, -0.1, 0.05};
  EXPECT_EQ(Describe("1"), "gradients are 0.000 times the golden in norms");
}

TEST_F(GradientRelationTest, ATensorWhoseRoundingHidesAFactorDoesNotCount) {
  Scale(kQuery, 2);
  floor_[kQuery] = 0.5;
  EXPECT_EQ(Describe("tp=2"), "");
}

}  // namespace
}  // namespace bkm
