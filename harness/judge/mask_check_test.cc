// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/mask_check.h"

#include <gtest/gtest.h>

#include <numeric>

namespace bkm {
namespace {

// Documents 0..4, 5..14, 15..18; the token at 8 was changed.
constexpr int64_t kLengths[] = {5, 10, 4};
constexpr int64_t kPosition = 8;

std::vector<int64_t> Range(int64_t begin, int64_t end) {
  std::vector<int64_t> range(end - begin);
  std::iota(range.begin(), range.end(), begin);
  return range;
}

CheckResult Check(std::vector<int64_t> moved, std::string type = "BlockMask",
                  int64_t position = kPosition) {
  Observation observation;
  observation.mask_calls = {{"layers.0", std::move(type), "ab", std::nullopt}};
  observation.reach = ObservedReach{position, moved, std::vector<double>(moved.size(), 0.5)};
  return CheckMask(observation, kLengths);
}

TEST(MaskCheckTest, ReachOfACausalMaskInsideTheDocumentPasses) {
  const CheckResult result = Check(Range(7, 15));
  EXPECT_EQ(result.outcome, CheckOutcome::kPassed);
  EXPECT_EQ(result.stage, Stage::kMask);
  EXPECT_EQ(result.evidence, Json({{"types", {{"BlockMask", 1}}},
                                   {"different_masks", 1},
                                   {"position", 8},
                                   {"moved", 8},
                                   {"reach", {{"moved", 6}, {"of", 6}}}}));
}

TEST(MaskCheckTest, LastPositionOfTheDocumentMayStay) {
  EXPECT_EQ(Check(Range(7, 14)).outcome, CheckOutcome::kPassed);
}

TEST(MaskCheckTest, FirstTokenOfADocumentHasNoLabelBefore) {
  EXPECT_EQ(Check(Range(5, 15), "BlockMask", 5).outcome, CheckOutcome::kPassed);
  EXPECT_EQ(Check(Range(4, 15), "BlockMask", 5).message,
            "documents see each other: changing token 5 of document 1 moves 1 positions of "
            "document 0");
}

TEST(MaskCheckTest, LaterDocumentsThatMoveSeeTheDocument) {
  const CheckResult result = Check(Range(7, 19));
  EXPECT_EQ(result.outcome, CheckOutcome::kFailed);
  EXPECT_EQ(result.reason, "mask-leak");
  EXPECT_EQ(result.message,
            "documents see each other: changing token 8 of document 1 moves 4 positions of "
            "document 2");
  EXPECT_EQ(result.evidence["leaked"], Json({{"document 2", 4}}));
  EXPECT_EQ(result.evidence["largest_leak"], 0.5);
}

TEST(MaskCheckTest, EarlierPositionsThatMoveSeeTheFuture) {
  EXPECT_EQ(Check(Range(5, 15)).message,
            "tokens see the future: changing token 8 of document 1 moves 2 earlier positions of "
            "its own document");
}

TEST(MaskCheckTest, EverythingThatMovesSeesEverything) {
  EXPECT_EQ(Check(Range(0, 19)).message,
            "everything sees everything: changing token 8 of document 1 moves 5 positions of "
            "document 0, 4 positions of document 2, 2 earlier positions of its own document");
}

TEST(MaskCheckTest, LeakWithoutAnyMaskIsAMissingMask) {
  const CheckResult result = Check(Range(7, 19), "NoneType");
  EXPECT_EQ(result.reason, "mask-missing");
  EXPECT_EQ(Check(Range(7, 15), "NoneType").outcome, CheckOutcome::kPassed);
}

TEST(MaskCheckTest, ReachThatEndsTooSoonIsShort) {
  const CheckResult result = Check({7, 8, 9, 10, 11});
  EXPECT_EQ(result.reason, "mask-short");
  EXPECT_EQ(result.message,
            "changing token 8 moves only 4 of the 6 later positions of its document");
  EXPECT_EQ(Check({7, 8, 9, 10, 11, 13}).outcome, CheckOutcome::kPassed);
}

TEST(MaskCheckTest, ChangeThatMovesNothingOfItsOwnIsShort) {
  EXPECT_EQ(Check({}).reason, "mask-short");
  EXPECT_EQ(Check(Range(8, 15)).message, "changing token 8 does not even move its own log-probs");
  EXPECT_EQ(Check({7, 9, 10, 11, 12, 13}).reason, "mask-short");
}

TEST(MaskCheckTest, MaskWithOtherPairsIsEvidence) {
  Observation observation;
  observation.mask_calls = {{"layers.0", "BlockMask", "ab", 80},
                            {"layers.1", "BlockMask", "cd", 190}};
  EXPECT_EQ(CheckMask(observation, kLengths).evidence["pairs"],
            Json({{"layer", "layers.1"}, {"seen", 190}, {"expected", 80}}));
}

TEST(MaskCheckTest, WithoutAReachTestNothingCanBeSaid) {
  EXPECT_EQ(CheckMask(Observation(), kLengths).outcome, CheckOutcome::kUnseen);
  EXPECT_EQ(Check({}, "BlockMask", 19).outcome, CheckOutcome::kUnseen);
}

}  // namespace
}  // namespace bkm
