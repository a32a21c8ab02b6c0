// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/selftest/detection_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Detection Caught(const char* fault, std::optional<double> margin = std::nullopt) {
  return {.fault = fault,
          .engine = "torchtitan",
          .attention = "flex",
          .model = "qwen3",
          .drive = "engine",
          .verdict = "wrong",
          .stage = "golden",
          .reason = "log-probs-off",
          .check = "numbers",
          .margin = margin,
          .message = "off",
          .outcome = DetectionOutcome::kAsExpected};
}

TEST(DetectionTableTest, GoldenSurvivesItsJson) {
  const auto golden = GoldenOf({Caught("b", 100.0), Caught("a")}, {});
  EXPECT_EQ(*GoldenDetectionsFromJson(Json::parse(ToJson(golden).dump()), "g.json"), golden);
  EXPECT_EQ(golden[0].fault, "a");
}

TEST(DetectionTableTest, TheSameFaultUnderATrainerIsARowOfItsOwn) {
  Detection by_trainer = Caught("a", 16.0);
  by_trainer.drive = "trainer";
  const auto golden = GoldenOf({Caught("a", 4096.0), by_trainer}, {});
  ASSERT_EQ(golden.size(), 2u);
  EXPECT_EQ(golden[0].margin, 4096);
  EXPECT_EQ(golden[1].margin, 16);
  EXPECT_THAT(DifferencesFrom(golden, {Caught("a", 4096.0), by_trainer}, true), IsEmpty());
  EXPECT_THAT(DetectionText({by_trainer}), HasSubstr("flex by the trainer"));
}

TEST(DetectionTableTest, MarginsAreKeptAsBandsOfAFactorOfFour) {
  for (const auto& [margin, band] : std::vector<std::pair<double, double>>{
           {15, 0}, {16, 16}, {63, 16}, {64, 64}, {255, 64}, {256, 256}}) {
    EXPECT_EQ(GoldenOf({Caught("a", margin)}, {})[0].margin, band) << margin;
  }
}

TEST(DetectionTableTest, NoiseAroundTheEdgeOfABandIsNoDifference) {
  const auto golden = GoldenOf({Caught("a", 70)}, {});
  EXPECT_THAT(DifferencesFrom(golden, {Caught("a", 50)}, true), IsEmpty());
  EXPECT_THAT(DifferencesFrom(golden, {Caught("a", 300)}, true), IsEmpty());
  EXPECT_THAT(DifferencesFrom(golden, {Caught("a", 30)}, true),
              ElementsAre("a, torchtitan, qwen3, flex: was wrong at golden, log-probs-off "
                          "(numbers), 64 floors or more; now wrong at golden, log-probs-off "
                          "(numbers), 16 floors or more"));
}

TEST(DetectionTableTest, ANewRowAndALostOneAreDifferences) {
  const auto golden = GoldenOf({Caught("a")}, {});
  EXPECT_THAT(DifferencesFrom(golden, {Caught("a"), Caught("b")}, true),
              ElementsAre(HasSubstr("not in the golden table")));
  EXPECT_THAT(DifferencesFrom(golden, {}, true), ElementsAre(HasSubstr("no cell of this row ran")));
  EXPECT_THAT(DifferencesFrom(golden, {}, false), IsEmpty());
}

TEST(DetectionTableTest, OneRowCoversEveryFaultFreeCellOfAPair) {
  Detection right = Caught("");
  right.verdict = "ok";
  right.stage = right.reason = right.check = "";
  right.margin.reset();
  const auto golden = Merged({}, GoldenOf({right, right}, {}));
  EXPECT_EQ(golden.size(), 1);
  EXPECT_THAT(DifferencesFrom(golden, {right, right, right}, true), IsEmpty());
  EXPECT_THAT(DifferencesFrom(golden, {right, Caught("")}, true),
              ElementsAre(HasSubstr("was ok; now wrong")));
}

TEST(DetectionTableTest, AcceptingAPartKeepsTheRest) {
  const auto before = GoldenOf({Caught("a", 20), Caught("b")}, {});
  const auto now = GoldenOf({Caught("a", 2000)}, before);
  const auto merged = Merged(before, now);
  ASSERT_EQ(merged.size(), 2u);
  EXPECT_EQ(merged[0].margin, 1024);
  EXPECT_EQ(merged[1], before[1]);
}

TEST(DetectionTableTest, NoiseAroundTheLeastMarginIsNoDifferenceForAThinFault) {
  const auto golden = GoldenOf({Caught("a", 15)}, {});
  EXPECT_THAT(DifferencesFrom(golden, {Caught("a", 17)}, true), IsEmpty());
  EXPECT_THAT(DifferencesFrom(golden, {Caught("a", 33)}, true), ElementsAre(HasSubstr("now")));
}

TEST(DetectionTableTest, TextListsUnexpectedCellsAndWhyFaultsAreSeenLessWell) {
  Detection escaped = Caught("a");
  escaped.verdict = "ok";
  escaped.reason = escaped.message = "";
  escaped.outcome = DetectionOutcome::kEscaped;
  Detection invisible = Caught("c");
  invisible.verdict = "ok";
  invisible.limit = "invisible";
  invisible.why = "mathematics";
  const std::string text = DetectionText({escaped, Caught("b", 47.3), invisible});
  EXPECT_THAT(text, HasSubstr("ESCAPED: a, torchtitan, qwen3, flex: ok\n"));
  EXPECT_THAT(text, HasSubstr("log-probs-off (numbers)  47"));
  EXPECT_THAT(text, HasSubstr("invisible: c, torchtitan, qwen3, flex: mathematics\n"));
  EXPECT_THAT(text, HasSubstr("3 planted cells and 0 fault-free ones: 1 NOT as expected\n"));
}

}  // namespace
}  // namespace bkm
