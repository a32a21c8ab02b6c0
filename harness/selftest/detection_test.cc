// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/selftest/detection.h"

#include <gtest/gtest.h>

#include "harness/judge/numbers_check.h"

namespace bkm {
namespace {

CatalogueFault Fault(bool is_numeric) {
  return {.id = "a",
          .is_numeric = is_numeric,
          .caught_by = {{.stage = Stage::kGolden, .reasons = {"log-probs-off"}}}};
}

CellRecord Judged(VerdictKind kind, Stage stage, const char* reason, double floors = 0) {
  CellRecord record;
  record.cell.engine = "torchtitan";
  record.verdict = Verdict{.kind = kind, .stage = stage, .reason = reason, .message = "m"};
  NumbersFacts facts;
  facts.quantities["log_probs_mean"].multiple = floors / 2;
  facts.quantities["log_probs_max"].multiple = floors;
  facts.quantities["gradient"].multiple = 1000;
  record.verdict->findings = {{.claim = "numbers",
                               .outcome = ClaimOutcome::kFailed,
                               .stage = stage,
                               .reason = reason,
                               .message = "m",
                               .facts = FactsJson(facts)}};
  record.verdict->failures = 1;
  return record;
}

DetectionOutcome OutcomeOf(const CatalogueFault& fault, const CellRecord& record) {
  return Assess(&fault, record).outcome;
}

TEST(DetectionTest, FaultCaughtAtItsListedStageIsAsExpected) {
  const CatalogueFault fault = Fault(false);
  const Detection detection =
      Assess(&fault, Judged(VerdictKind::kWrong, Stage::kGolden, "log-probs-off"));
  EXPECT_EQ(detection.outcome, DetectionOutcome::kAsExpected);
  EXPECT_EQ(detection.check, "numbers");
}

TEST(DetectionTest, ADiagnosisInTheMessageDoesNotHideTheCheck) {
  const CatalogueFault fault = Fault(false);
  CellRecord record = Judged(VerdictKind::kWrong, Stage::kGolden, "log-probs-off");
  record.verdict->message += "; this is the answer that ...";
  EXPECT_EQ(Assess(&fault, record).check, "numbers");
}

TEST(DetectionTest, AnOkCellWithAFaultIsAnEscape) {
  EXPECT_EQ(OutcomeOf(Fault(false), Judged(VerdictKind::kOk, Stage::kGolden, "")),
            DetectionOutcome::kEscaped);
}

TEST(DetectionTest, AnotherStageReasonOrVerdictIsTheWrongReason) {
  for (const CellRecord& record : {Judged(VerdictKind::kWrong, Stage::kMask, "log-probs-off"),
                                   Judged(VerdictKind::kWrong, Stage::kGolden, "loss-off"),
                                   Judged(VerdictKind::kBroken, Stage::kGolden, "log-probs-off")}) {
    EXPECT_EQ(OutcomeOf(Fault(false), record), DetectionOutcome::kWrongReason);
  }
  CatalogueFault refused = Fault(false);
  refused.caught_by[0].verdict = VerdictKind::kBroken;
  EXPECT_EQ(OutcomeOf(refused, Judged(VerdictKind::kBroken, Stage::kGolden, "log-probs-off")),
            DetectionOutcome::kAsExpected);
}

TEST(DetectionTest, ANumericFaultNeedsSixteenFloorsInAQuantityThatNamesIt) {
  const Stage golden = Stage::kGolden;
  const CatalogueFault fault = Fault(true);
  const Detection detection =
      Assess(&fault, Judged(VerdictKind::kWrong, golden, "log-probs-off", 16));
  EXPECT_EQ(detection.outcome, DetectionOutcome::kAsExpected);
  EXPECT_EQ(detection.margin, 16);
  EXPECT_EQ(OutcomeOf(fault, Judged(VerdictKind::kWrong, golden, "log-probs-off", 15.9)),
            DetectionOutcome::kWeak);
  CellRecord named = Judged(VerdictKind::kWrong, golden, "log-probs-off", 2);
  named.verdict->diagnosis = {.answer = "no-rope"};
  EXPECT_EQ(OutcomeOf(fault, named), DetectionOutcome::kWeak) << "an answer of another fault";
  CatalogueFault predicted = fault;
  predicted.answer = "no-rope";
  EXPECT_EQ(OutcomeOf(predicted, named), DetectionOutcome::kAsExpected);
  predicted.answer = "bidirectional";
  EXPECT_EQ(OutcomeOf(predicted, named), DetectionOutcome::kWeak);
}

TEST(DetectionTest, AThinFaultMustBeCaughtByAnyMargin) {
  CatalogueFault thin = Fault(true);
  thin.thin = {{{.engines = {"torchtitan"}}, "near the floor"}};
  const CellRecord near = Judged(VerdictKind::kWrong, Stage::kGolden, "log-probs-off", 5);
  EXPECT_EQ(OutcomeOf(thin, near), DetectionOutcome::kAsExpected);
  EXPECT_EQ(Assess(&thin, near).limit, "thin");
  EXPECT_EQ(Assess(&thin, near).why, "near the floor");
  EXPECT_EQ(OutcomeOf(thin, Judged(VerdictKind::kOk, Stage::kGolden, "")),
            DetectionOutcome::kEscaped);
  EXPECT_EQ(OutcomeOf(thin, Judged(VerdictKind::kWrong, Stage::kGolden, "loss-off", 5)),
            DetectionOutcome::kWrongReason);
  thin.thin[0].where.engines = {"transformers"};
  EXPECT_EQ(OutcomeOf(thin, near), DetectionOutcome::kWeak) << "thin elsewhere";
}

TEST(DetectionTest, AnInvisibleFaultThatIsSeenIsStale) {
  CatalogueFault invisible = Fault(true);
  invisible.invisible = {{{.engines = {"torchtitan"}}, "mathematics"}};
  const CellRecord green = Judged(VerdictKind::kOk, Stage::kGolden, "", 2);
  EXPECT_EQ(OutcomeOf(invisible, green), DetectionOutcome::kAsExpected);
  EXPECT_EQ(Assess(&invisible, green).limit, "invisible");
  EXPECT_EQ(OutcomeOf(invisible, Judged(VerdictKind::kWrong, Stage::kGolden, "log-probs-off", 99)),
            DetectionOutcome::kStale);
  invisible.invisible[0].where.engines = {"transformers"};
  EXPECT_EQ(OutcomeOf(invisible, green), DetectionOutcome::kEscaped) << "invisible elsewhere";
}

TEST(DetectionTest, AHarmlessFaultAndNoFaultMustBeOk) {
  CatalogueFault harmless{.id = "a", .is_harmless = true};
  EXPECT_EQ(OutcomeOf(harmless, Judged(VerdictKind::kOk, Stage::kGolden, "")),
            DetectionOutcome::kAsExpected);
  const CellRecord red = Judged(VerdictKind::kWrong, Stage::kGolden, "log-probs-off", 5);
  EXPECT_EQ(OutcomeOf(harmless, red), DetectionOutcome::kFalseRed);
  EXPECT_EQ(Assess(nullptr, red).outcome, DetectionOutcome::kFalseRed);
}

TEST(DetectionTest, AFaultThatCouldNotBePlantedIsUnmeasured) {
  for (VerdictKind kind : {VerdictKind::kUnsupported, VerdictKind::kSpurious}) {
    EXPECT_EQ(OutcomeOf(Fault(false), Judged(kind, Stage::kForward, "harness-error")),
              DetectionOutcome::kUnmeasured);
  }
  EXPECT_EQ(OutcomeOf(Fault(false), CellRecord()), DetectionOutcome::kUnmeasured);
}

}  // namespace
}  // namespace bkm
