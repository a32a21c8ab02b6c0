// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/mask_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace bkm {
namespace {

constexpr int64_t kLengths[] = {4, 12, 6};

Relation RightOf(const std::vector<int64_t>& lengths, int64_t window = 0) {
  return RightRelation(PackedDocuments(lengths), window);
}
Relation Window(int64_t window) { return RightOf({4, 12, 6}, window); }

ObservedReach ReachOf(int64_t begin, int64_t end, int64_t position) {
  std::vector<int64_t> moved(end - begin);
  std::iota(moved.begin(), moved.end(), begin);
  return {position, moved, std::vector<double>(moved.size(), 0.5)};
}

// A cell whose layers have these relations and whose reach test passes.
CheckResult Check(const std::vector<Relation>& layers, std::vector<int64_t> windows,
                  const std::string& type = "BlockMask", bool has_masks = true) {
  Observation observation;
  observation.mask_calls = {{"layers.0", type, "ab", std::nullopt, "caller"}};
  observation.reach = ReachOf(7, 16, 8);
  Relations relations;
  for (size_t i = 0; i < layers.size(); ++i) {
    observation.attended.push_back({static_cast<int64_t>(i), absl::StrCat("r", i)});
    relations.emplace(absl::StrCat("r", i), layers[i]);
  }
  AskedMasks asked = {PackedDocuments(kLengths), std::move(windows)};
  asked.has_masks = has_masks;
  return CheckMask(observation, asked, relations);
}

TEST(MaskCheckTest, RightRelationsAndReachPass) {
  const CheckResult result = Check({Window(5), Window(0)}, {5, 0});
  EXPECT_EQ(result.outcome, ClaimOutcome::kPassed);
  EXPECT_EQ(result.stage, Stage::kMask);
  EXPECT_EQ(result.facts, Json({{"types", {{"BlockMask", 1}}},
                                {"different_masks", 1},
                                {"owners", {{"caller", 1}}},
                                {"windows", {5, 0}},
                                {"attended", {{"layers", 2}, {"wrong", 0}}},
                                {"position", 8},
                                {"moved", 9},
                                {"reach", {{"moved", 7}, {"of", 7}}}}));
}

TEST(MaskCheckTest, LayersThatLeakAreNamedWithAPair) {
  const CheckResult result = Check({Window(0), RightOf({22}), Window(0)}, {0, 0, 0});
  EXPECT_EQ(result.outcome, ClaimOutcome::kFailed);
  EXPECT_EQ(result.reason, "mask-leak");
  EXPECT_EQ(result.message,
            "documents see each other in 1 of 3 layers (1): token 4 (document 1, position 0) sees "
            "token 3 (document 0, position 3)");
  EXPECT_EQ(
      result.facts["layers"],
      Json::array({{{"layer", 1}, {"fault", "other-document"}, {"extra", 144}, {"missing", 0}}}));
  EXPECT_EQ(result.facts["picture"], Json({"\\..", "#\\.", "##\\"}));
}

TEST(MaskCheckTest, LeakWithoutAnyMaskIsAMissingMask) {
  const CheckResult result = Check({RightOf({22})}, {0}, "NoneType");
  EXPECT_EQ(result.reason, "mask-missing");
  EXPECT_EQ(result.message,
            "no mask reached the layers, and documents see each other in every layer: token 4 "
            "(document 1, position 0) sees token 3 (document 0, position 3)");
  EXPECT_EQ(Check({Window(0)}, {0}, "NoneType").outcome, ClaimOutcome::kPassed);
}

TEST(MaskCheckTest, AnAttentionThatIsToldBordersLacksNoMask) {
  const CheckResult result = Check({RightOf({22})}, {0}, "NoneType", /*has_masks=*/false);
  EXPECT_EQ(result.reason, "mask-leak");
  EXPECT_THAT(result.message, testing::StartsWith("documents see each other in every layer"));
}

TEST(MaskCheckTest, FutureIsNotALeak) {
  Relation seen = Window(0);
  seen.Set(4, 5, true);
  const CheckResult result = Check({seen}, {0});
  EXPECT_EQ(result.reason, "mask-future");
  EXPECT_EQ(result.message,
            "tokens see the future in every layer: token 4 (document 1, position 0) sees token 5 "
            "(document 1, position 1)");
}

TEST(MaskCheckTest, DroppedWindowIsTooWide) {
  const CheckResult result = Check({Window(0), Window(0)}, {5, 0});
  EXPECT_EQ(result.reason, "window-too-wide");
  EXPECT_EQ(result.message,
            "the window is none where 5 tokens is asked in 1 of 2 layers (0): token 9 (document 1, "
            "position 5) sees token 4 (document 1, position 0)");
  EXPECT_EQ(Check({Window(9), Window(0)}, {5, 0}).reason, "window-too-wide");
}

TEST(MaskCheckTest, WindowWhereNoneIsAskedIsTooNarrow) {
  const CheckResult result = Check({Window(5), Window(5)}, {5, 0});
  EXPECT_EQ(result.reason, "window-too-narrow");
  EXPECT_EQ(result.facts["layers"], Json::array({{{"layer", 1},
                                                  {"fault", "window"},
                                                  {"extra", 0},
                                                  {"missing", 29},
                                                  {"window", "5 tokens"},
                                                  {"asked", "none"}}}));
  EXPECT_EQ(Check({Window(2)}, {5}).reason, "window-too-narrow");
}

TEST(MaskCheckTest, RightWidthsOnOtherLayersAreOnTheWrongLayers) {
  const CheckResult result = Check({Window(0), Window(5), Window(0), Window(5)}, {5, 0, 5, 0});
  EXPECT_EQ(result.reason, "window-wrong-layers");
  EXPECT_EQ(result.message,
            "windows are on the wrong layers in every layer: token 9 (document 1, position 5) sees "
            "token 4 (document 1, position 0)");
}

TEST(MaskCheckTest, OneTokenAtTheEdgeIsOffByOne) {
  EXPECT_EQ(Check({Window(6), Window(0)}, {5, 0}).reason, "mask-off-by-one");
  EXPECT_EQ(Check({Window(4), Window(0)}, {5, 0}).reason, "mask-off-by-one");
  const CheckResult result = Check({RightOf({5, 12, 5})}, {0});
  EXPECT_EQ(result.reason, "mask-off-by-one");
  EXPECT_EQ(result.message,
            "documents begin one token too early or too late in every layer: token 4 "
            "(document 1, position 0) sees token 3 (document 0, position 3)");
}

TEST(MaskCheckTest, MostSeriousFaultIsReported) {
  EXPECT_EQ(Check({Window(3), RightOf({22}), RightOf({5, 12, 5})}, {0, 0, 0}).reason, "mask-leak");
}

TEST(MaskCheckTest, MissingPairIsShort) {
  Relation seen = Window(0);
  seen.Set(10, 5, false);
  EXPECT_EQ(Check({seen}, {0}).reason, "mask-short");
}

TEST(MaskCheckTest, ALayerThatNobodyReadIsUnseen) {
  const CheckResult result = Check({Window(0)}, {0, 0});
  EXPECT_EQ(result.outcome, ClaimOutcome::kUnseen);
  EXPECT_EQ(result.message, "nobody read which query attends to which key in 1 of 2 layers (1)");
}

TEST(MaskCheckTest, EachTrainingStepIsCompared) {
  constexpr std::array<int64_t, 2> kOther = {10, 12};
  Observation observation;
  observation.reach = ReachOf(7, 16, 8);
  observation.attended = {{0, "first"}};
  observation.steps.resize(2);
  observation.steps[0].attended = observation.attended;
  observation.steps[1].attended = {{0, "second"}};
  const AskedMasks asked = {PackedDocuments(kLengths), {0}};
  const Relations first = {{"first", Window(0)}};
  const Relation right = RightRelation(PackedDocuments(kOther), 0);
  const auto check = [&](const Relation& second) {
    const std::vector<StepMasks> steps = {{PackedDocuments(kLengths), first},
                                          {PackedDocuments(kOther), Relations{{"second", second}}}};
    return CheckMask(observation, asked, first, steps);
  };
  const CheckResult passed = check(right);
  EXPECT_EQ(passed.outcome, ClaimOutcome::kPassed) << passed.message;
  EXPECT_EQ(passed.facts["steps"].size(), 2);
  const CheckResult stale = check(Window(0));
  EXPECT_EQ(stale.outcome, ClaimOutcome::kFailed);
  EXPECT_THAT(stale.message, testing::StartsWith("in training step 2 "));
  observation.steps[1].attended.clear();
  observation.steps[1].attended_error = "layer 0: no";
  EXPECT_EQ(check(right).message,
            "in training step 2 nobody read which query attends to which key in 1 of 1 layers (0): "
            "layer 0: no");
  observation.steps.pop_back();
  EXPECT_EQ(check(right).outcome, ClaimOutcome::kUnseen);
}

TEST(MaskCheckTest, WhereNoRelationWasReadTheReachTestCanOnlyFail) {
  Observation observation;
  observation.attended_error = "layer 0: no";
  observation.reach = ReachOf(7, 16, 8);
  const AskedMasks asked = {PackedDocuments(kLengths), {0}};
  const Relations none;
  const CheckResult unread = CheckMask(observation, asked, none);
  EXPECT_EQ(unread.outcome, ClaimOutcome::kUnseen);
  EXPECT_EQ(unread.message,
            "nobody read which query attends to which key in 1 of 1 layers (0): layer 0: no");
  EXPECT_EQ(unread.facts["attended_error"], "layer 0: no");
  observation.more_reaches = {ReachOf(15, 22, 16), ReachOf(2, 16, 4)};
  EXPECT_EQ(CheckMask(observation, asked, none).message,
            "documents see each other: changing token 4 of document 1 moves 1 positions of "
            "document 0");
}

TEST(MaskCheckTest, WithoutAReachTestNothingCanBeSaid) {
  const AskedMasks asked = {PackedDocuments(kLengths), {0}};
  EXPECT_EQ(CheckMask(Observation(), asked, Relations()).outcome, ClaimOutcome::kUnseen);
}

TEST(MaskCheckTest, RelationsThatCannotBeReadSaySo) {
  Observation observation;
  observation.reach = ReachOf(7, 16, 8);
  observation.attended = {{0, "ab"}};
  EXPECT_EQ(
      CheckMask(observation, {PackedDocuments(kLengths), {0}}, absl::DataLossError("torn")).outcome,
      ClaimOutcome::kUnreadable);
}

}  // namespace
}  // namespace bkm
