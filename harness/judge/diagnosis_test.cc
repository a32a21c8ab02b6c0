// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace bkm {
namespace {

// Two documents of two tokens: positions 0 and 2 are judged.
const PackedBatch kBatch = {{5, 2, 6, 2}, {0, 1, 0, 1}, {2, 2}};
const std::map<std::string, std::vector<double>> kPredicted = {{"bidirectional", {-1, 0, -2, 0}},
                                                               {"no-rope", {-1.25, 0, -2.25, 0}}};

std::optional<Diagnosis> Of(std::vector<double> log_probs, double floor = 0.0625) {
  return Diagnose(log_probs, kPredicted, kBatch, floor);
}

TEST(DiagnosisTest, NamesThePredictedAnswerThatTheCellGave) {
  EXPECT_EQ(Of({-1.0625, 0, -2.0625, 0}), (Diagnosis{"bidirectional", 0.0625, 1}));
}

TEST(DiagnosisTest, NearestOfTwoMatchesIsNamed) {
  EXPECT_EQ(Of({-1.1875, 0, -2.1875, 0})->answer, "no-rope");
}

TEST(DiagnosisTest, FourFloorsAreAMatchAndMoreIsNone) {
  EXPECT_EQ(Of({-0.75, 0, -1.75, 0})->answer, "bidirectional");
  EXPECT_EQ(Of({-0.5, 0, -1.75, 0}), std::nullopt);
}

TEST(DiagnosisTest, PositionsWithoutALabelDoNotCount) {
  EXPECT_EQ(Of({-1, -9, -2, -9}), (Diagnosis{"bidirectional", 0, 0}));
}

TEST(DiagnosisTest, AnswersThatCannotBeComparedDoNotMatch) {
  EXPECT_EQ(Of({-1, 0, -2}), std::nullopt);
  EXPECT_EQ(Of({std::numeric_limits<double>::quiet_NaN(), 0, -2, 0}), std::nullopt);
}

TEST(DiagnosisTest, AFaultBelowFourFloorsIsNearerThanTheRightAnswer) {
  const std::vector<double> right = {-0.875, 0, -1.875, 0};  // 2 floors from "bidirectional"
  const auto nearer = [&](const std::vector<double>& log_probs, double floor) {
    return NearerThanRight(log_probs, right, kPredicted, kBatch, floor);
  };
  EXPECT_EQ(nearer({-0.984375, 0, -1.984375, 0}, 0.0625),
            (Diagnosis{"bidirectional", 0.015625, 0.25}));
  EXPECT_EQ(nearer({-0.921875, 0, -1.921875, 0}, 0.0625), std::nullopt);
  EXPECT_EQ(nearer(right, 0.0625), std::nullopt);
  // Now less than 1.25 floors from the right answer.
  EXPECT_EQ(nearer({-0.984375, 0, -1.984375, 0}, 0.109375), std::nullopt);
}

TEST(DiagnosisTest, DescriptionNamesTheAnswerAndItsDistance) {
  EXPECT_EQ(Describe({"causal-across-documents", 0.01, 0.5}),
            "its log-probs are those of \"causal across documents\" (0.5 floors from that answer)");
}

}  // namespace
}  // namespace bkm
