// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/reach_check.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

namespace bkm {
namespace {

// Documents 0..4, 5..14, 15..18; the token at 8 was changed.
constexpr int64_t kReachedDocuments[] = {5, 10, 4};
constexpr int64_t kPosition = 8;

std::vector<int64_t> Range(int64_t begin, int64_t end) {
  std::vector<int64_t> range(end - begin);
  std::iota(range.begin(), range.end(), begin);
  return range;
}

CheckResult CheckMoved(const std::vector<int64_t>& moved, int64_t position = kPosition,
                       std::vector<int64_t> windows = {0, 0}, double noise = 0) {
  return CheckReach({position, moved, std::vector<double>(moved.size(), 0.5)},
                    {PackedDocuments(kReachedDocuments), std::move(windows), noise});
}

TEST(ReachCheckTest, ReachOfACausalMaskInsideTheDocumentPasses) {
  const CheckResult result = CheckMoved(Range(7, 15));
  EXPECT_EQ(result.outcome, ClaimOutcome::kPassed);
  EXPECT_EQ(result.stage, Stage::kMask);
  EXPECT_EQ(result.facts,
            Json({{"position", 8}, {"moved", 8}, {"reach", {{"moved", 6}, {"of", 6}}}}));
}

TEST(ReachCheckTest, LastPositionOfTheDocumentMayStay) {
  EXPECT_EQ(CheckMoved(Range(7, 14)).outcome, ClaimOutcome::kPassed);
}

TEST(ReachCheckTest, PositionBeforeADocumentMayChange) {
  EXPECT_EQ(CheckMoved(Range(5, 15), 5).outcome, ClaimOutcome::kPassed);
  EXPECT_EQ(CheckMoved(Range(4, 15), 5).outcome, ClaimOutcome::kPassed);
  EXPECT_EQ(CheckMoved(Range(3, 15), 5).message,
            "documents see each other: changing token 5 of document 1 moves 1 positions of "
            "document 0");
  EXPECT_EQ(CheckMoved({0, 1, 2, 3, 4, 18}, 0).outcome, ClaimOutcome::kPassed);
  EXPECT_EQ(CheckMoved({0, 1, 2, 3, 4, 17}, 0).reason, "mask-leak");
}

TEST(ReachCheckTest, TheLastPositionOfARanksShareHasTheLabelOfItsFirstToken) {
  const auto check = [](std::vector<std::pair<int64_t, int64_t>> rows) {
    std::vector<int64_t> moved = Range(5, 15);
    moved.push_back(18);
    return CheckReach({5, moved, std::vector<double>(moved.size(), 0.5)},
                      {.documents = PackedDocuments(kReachedDocuments),
                       .windows = {0, 0},
                       .rows = std::move(rows)})
        .outcome;
  };
  // The second rank has documents 1 and 2: the changed token is its first.
  EXPECT_EQ(check({{0, 1}, {1, 2}}), ClaimOutcome::kPassed);
  EXPECT_EQ(check({{0, 2}, {2, 1}}), ClaimOutcome::kFailed);
  EXPECT_EQ(check({{0, 1}, {1, 1}, {2, 1}}), ClaimOutcome::kFailed);
  EXPECT_EQ(check({}), ClaimOutcome::kFailed);
}

TEST(ReachCheckTest, ACriticsValueBeforeTheChangeMustNotMove) {
  const auto check = [](const std::vector<int64_t>& moved) {
    return CheckReach({kPosition, moved, std::vector<double>(moved.size(), 0.5)},
                      {PackedDocuments(kReachedDocuments), {0}, 0, /*has_labels=*/false});
  };
  EXPECT_EQ(check(Range(8, 15)).outcome, ClaimOutcome::kPassed);
  EXPECT_EQ(check(Range(7, 15)).reason, "mask-future");
}

TEST(ReachCheckTest, ExpertsMayRoundOtherDocumentsAnewButNoMore) {
  const auto check = [](double size) {
    std::vector<double> sizes(8, 0.5);  // of the document's own positions
    sizes.push_back(size);
    std::vector<int64_t> moved = Range(7, 15);
    moved.push_back(16);
    return CheckReach({kPosition, moved, sizes},
                      {PackedDocuments(kReachedDocuments), {0}, 0, true, /*rounding=*/0.125});
  };
  EXPECT_EQ(check(0.125).outcome, ClaimOutcome::kPassed);
  EXPECT_EQ(check(0.25).reason, "mask-leak");
  EXPECT_EQ(check(std::numeric_limits<double>::infinity()).reason, "mask-leak");
}

TEST(ReachCheckTest, LaterDocumentsThatMoveSeeTheDocument) {
  const CheckResult result = CheckMoved(Range(7, 19));
  EXPECT_EQ(result.outcome, ClaimOutcome::kFailed);
  EXPECT_EQ(result.reason, "mask-leak");
  EXPECT_EQ(result.message,
            "documents see each other: changing token 8 of document 1 moves 4 positions of "
            "document 2");
  EXPECT_EQ(result.facts["leaked"], Json({{"document 2", 4}}));
  EXPECT_EQ(result.facts["largest_leak"], 0.5);
}

TEST(ReachCheckTest, EarlierPositionsThatMoveSeeTheFuture) {
  EXPECT_EQ(CheckMoved(Range(5, 15)).reason, "mask-future");
  EXPECT_EQ(CheckMoved(Range(5, 15)).message,
            "tokens see the future: changing token 8 of document 1 moves 2 earlier positions of "
            "its own document");
}

TEST(ReachCheckTest, EverythingThatMovesSeesEverything) {
  EXPECT_EQ(CheckMoved(Range(0, 19)).message,
            "everything sees everything: changing token 8 of document 1 moves 5 positions of "
            "document 0, 4 positions of document 2, 2 earlier positions of its own document");
}

TEST(ReachCheckTest, ReachThatEndsTooSoonIsShort) {
  const CheckResult result = CheckMoved({7, 8, 9, 10, 11});
  EXPECT_EQ(result.reason, "mask-short");
  EXPECT_EQ(result.message,
            "changing token 8 moves only 4 of the 6 later positions of its document");
  EXPECT_EQ(CheckMoved({7, 8, 9, 10, 11, 13}).outcome, ClaimOutcome::kPassed);
}

// Position 7 reads another token's logit from the same row, and the two may be equal.
TEST(ReachCheckTest, UnchangedLabelPositionPasses) {
  EXPECT_EQ(CheckMoved(Range(8, 15)).outcome, ClaimOutcome::kPassed);
}

TEST(ReachCheckTest, ChangeThatMovesNothingOfItsOwnIsShort) {
  EXPECT_EQ(CheckMoved({}).reason, "mask-short");
  EXPECT_EQ(CheckMoved({7, 9, 10, 11, 12, 13}).message,
            "changing token 8 does not move its own log-prob");
  EXPECT_EQ(CheckMoved({7, 9, 10, 11, 12, 13}).reason, "mask-short");
}

TEST(ReachCheckTest, WindowsOfAllLayersAddUpAndAnotherLayerReachesTheEnd) {
  // Two layers of 3 tokens: position 5 reaches 7, then 9.
  EXPECT_EQ(CheckMoved(Range(5, 10), 5, {3, 3}).outcome, ClaimOutcome::kPassed);
  const CheckResult result = CheckMoved(Range(5, 12), 5, {3, 3});
  EXPECT_EQ(result.reason, "window-too-wide");
  EXPECT_EQ(result.message,
            "tokens see further back than any window: changing token 5 of document 1 moves 2 "
            "positions beyond the windows of all layers");
  EXPECT_EQ(CheckMoved(Range(5, 15), 5, {3, 0}).outcome, ClaimOutcome::kPassed);
  EXPECT_EQ(CheckMoved(Range(5, 10), 5, {3, 0}).reason, "mask-short");
}

TEST(ReachCheckTest, NoiseOfADeviceIsNoMove) {
  const AskedMasks exact = {PackedDocuments(kReachedDocuments), {0}, 0};
  AskedMasks noisy = exact;
  noisy.noise = 1e-6;
  ObservedReach reach = {kPosition, Range(6, 15), std::vector<double>(9, 0.5)};
  reach.largest[0] = 1e-7;
  EXPECT_EQ(CheckReach(reach, exact).reason, "mask-future");
  EXPECT_EQ(CheckReach(reach, noisy).outcome, ClaimOutcome::kPassed);
}

TEST(ReachCheckTest, ValueHasNoLabel) {
  AskedMasks asked = {PackedDocuments(kReachedDocuments), {0}};
  asked.has_labels = false;
  const auto check = [&](const std::vector<int64_t>& moved) {
    return CheckReach({kPosition, moved, std::vector<double>(moved.size(), 0.5)}, asked);
  };
  EXPECT_EQ(check(Range(8, 15)).outcome, ClaimOutcome::kPassed);
  EXPECT_EQ(check(Range(7, 15)).reason, "mask-future");
}

TEST(ReachCheckTest, PositionOutsideOfTheBatchSaysNothing) {
  EXPECT_EQ(CheckMoved({}, 19).outcome, ClaimOutcome::kUnseen);
  EXPECT_EQ(CheckMoved({}, -1).outcome, ClaimOutcome::kUnseen);
}

}  // namespace
}  // namespace bkm
