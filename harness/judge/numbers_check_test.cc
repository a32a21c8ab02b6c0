// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/numbers_check.h"

#include <gtest/gtest.h>

#include <limits>

#include "harness/judge/testing_steps.h"

namespace bkm {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();

void ExpectFailed(const RightCell& cell, Stage stage, const char* reason, const char* message) {
  const CheckResult result = CheckNumbers(cell.numbers());
  EXPECT_EQ(result.outcome, ClaimOutcome::kFailed);
  EXPECT_EQ(result.stage, stage);
  EXPECT_EQ(result.reason, reason);
  EXPECT_EQ(result.message, message);
}
void ExpectUnseen(const RightCell& cell, Stage stage, const char* message) {
  const CheckResult result = CheckNumbers(cell.numbers());
  EXPECT_EQ(result.outcome, ClaimOutcome::kUnseen);
  EXPECT_EQ(result.stage, stage);
  EXPECT_EQ(result.message, message);
}

TEST(NumbersCheckTest, GoldenNumbersPass) {
  const CheckResult result = CheckNumbers(MakeRightCell().numbers());
  EXPECT_EQ(result.outcome, ClaimOutcome::kPassed);
  EXPECT_EQ(result.facts["log_probs_mean"],
            Json({{"step", 0}, {"error", 0.0}, {"floor", 0.02}, {"multiple", 0.0}}));
}

TEST(NumbersCheckTest, FourTimesTheFloorIsTheBorder) {
  RightCell cell = MakeRightCell();
  *cell.reported[1].loss += 3.99 * 0.01;
  EXPECT_EQ(CheckNumbers(cell.numbers()).outcome, ClaimOutcome::kPassed);
  *cell.reported[1].loss += 0.02 * 0.01;
  ExpectFailed(cell, Stage::kGolden, "loss-off",
               "the loss in step 2 is off by 0.0401, 4.0 times the floor (4 allowed)");
}

// Their floors are 0.02, and nothing else moves as far.
TEST(NumbersCheckTest, AveragesInBf16HaveANearerBorder) {
  RightCell cell = MakeRightCell();
  const auto check = [&](const char* precision) {
    NumbersInput input = cell.numbers();
    input.average_multiple = AverageMultiple(precision);
    return CheckNumbers(input);
  };
  for (double& value : cell.tensors[0].log_probs) value += 0.05;
  EXPECT_EQ(check("fp32").outcome, ClaimOutcome::kPassed);
  EXPECT_FALSE(check("fp32").facts["log_probs_mean"].contains("allowed"));
  EXPECT_EQ(check("bf16").message,
            "the mean log-prob error in step 1 is off by 0.05, 2.5 times the floor (2 allowed)");
  EXPECT_EQ(check("bf16").facts["log_probs_mean"]["allowed"], 2);
  cell.tensors[0].log_probs = cell.golden[0].log_probs;
  for (double& value : cell.forward_only.log_probs) value += 0.05;
  EXPECT_EQ(check("bf16").reason, "log-probs-off");
  EXPECT_EQ(check("fp32").outcome, ClaimOutcome::kPassed);
  cell = MakeRightCell();
  cell.tensors[0].tensors["b"].norms[0] *= 1.05;
  EXPECT_EQ(check("bf16").message,
            "the gradient norm of b in step 1 is off by 0.05, 2.5 times the floor (2 allowed)");
  EXPECT_EQ(check("fp32").outcome, ClaimOutcome::kPassed);
}

// bf16 hides it: its floor of the mean is 0.02.
TEST(NumbersCheckTest, AForwardInFp32SeesWhatBf16Hides) {
  RightCell cell = MakeRightCell();
  std::vector<FloorStep> fp32_floor = cell.floor;
  fp32_floor[0].reports.log_probs = {.mean = 1e-5, .q99 = 1e-5, .max = 1e-5};
  const auto check = [&](const ForwardOnly& in_fp32) {
    NumbersInput input = cell.numbers();
    input.in_fp32 = in_fp32;
    input.fp32_floor = fp32_floor;
    return CheckNumbers(input);
  };
  ForwardOnly off = cell.forward_only;
  EXPECT_EQ(check(off).outcome, ClaimOutcome::kPassed);
  EXPECT_EQ(check(off).facts["in_fp32_max"]["floor"], 1e-5);
  EXPECT_FALSE(CheckNumbers(cell.numbers()).facts.contains("in_fp32_max"));
  for (double& value : off.log_probs) value += 0.001;
  const CheckResult wrong = check(off);
  EXPECT_EQ(wrong.outcome, ClaimOutcome::kFailed);
  EXPECT_EQ(wrong.reason, "log-probs-off");
  EXPECT_EQ(wrong.message,
            "the mean log-prob error of a forward in fp32, which only the stand-in takes, in step "
            "1 is off by 0.001, 100.0 times the floor (4 allowed)");
  // What users run comes first.
  cell.tensors[0].log_probs[0] += 3;
  EXPECT_EQ(check(off).message.find("in fp32"), std::string::npos) << check(off).message;
  off.log_probs.pop_back();
  EXPECT_EQ(check(off).message,
            "in step 1 4 log-probs of the forward in fp32 were reported for 5 tokens");
}

TEST(NumbersCheckTest, EarliestStepThatIsOffIsNamed) {
  RightCell cell = MakeRightCell();
  cell.tensors[1].log_probs = {-7, -7, -9, -7.5, -1};
  cell.tensors[0].tensors["b"].gradient = {0.8};
  ExpectFailed(cell, Stage::kGolden, "gradients-off",
               "the gradient of b in step 1 is off by 2, 100.0 times the floor (4 allowed)");
}

TEST(NumbersCheckTest, OneTokenOfManyIsSeenByTheMaximum) {
  RightCell cell = MakeRightCell();
  cell.floor[0].reports.log_probs.mean = cell.floor[0].reports.log_probs.q99 = 1;
  cell.tensors[0].log_probs[0] += 0.3;
  ExpectFailed(cell, Stage::kGolden, "log-probs-off",
               "the largest log-prob error in step 1 is off by 0.3, 5.0 times the floor (4 "
               "allowed)");
}

TEST(NumbersCheckTest, LogProbsAreNamedBeforeLossAndGradients) {
  RightCell cell = MakeRightCell();
  cell.tensors[1].log_probs = {-7, -7, -9, -7.5, -1};
  *cell.reported[1].loss += 1;
  cell.tensors[1].tensors["a"].gradient = {1, 1};
  ExpectFailed(cell, Stage::kGolden, "log-probs-off",
               "the mean log-prob error in step 2 is off by 0.333, 16.7 times the floor (4 "
               "allowed)");
  EXPECT_EQ(CheckNumbers(cell.numbers()).facts["worst_token"], Json({{"step", 1},
                                                                     {"position", 1},
                                                                     {"document", 0},
                                                                     {"document_position", 1},
                                                                     {"error", 1.0},
                                                                     {"golden", -8.0}}));
}

// A right cell whose probe asks for the entropy of each token.
RightCell MakeCellWithEntropy() {
  RightCell cell = MakeRightCell();
  cell.golden[0].entropy = cell.forward_only.entropy = {6, 7, 6.5, 7.5, 6.25};
  cell.forward_only.entropy_dtype = "float32";
  cell.floor[0].reports.entropy = {.mean = 0.01, .q99 = 0.02, .max = 0.03};
  return cell;
}

TEST(NumbersCheckTest, EntropyIsComparedAtEveryToken) {
  RightCell cell = MakeCellWithEntropy();
  EXPECT_EQ(CheckNumbers(cell.numbers()).outcome, ClaimOutcome::kPassed);
  cell.forward_only.entropy[4] += 0.13;  // the last token of a document has an entropy, too
  ExpectFailed(cell, Stage::kGolden, "entropy-off",
               "the 99 % quantile of entropy errors in step 1 is off by 0.13, 6.5 times the floor "
               "(4 allowed)");
}

TEST(NumbersCheckTest, EntropyInFp32HasANarrowerFloor) {
  RightCell cell = MakeCellWithEntropy();
  cell.floor[0].in_fp32 = {.loss = 0.01,
                           .log_probs = cell.floor[0].reports.log_probs,
                           .entropy = {.mean = 0.001, .q99 = 0.002, .max = 0.003}};
  for (double& entropy : cell.forward_only.entropy) entropy += 0.03125;  // bf16 numbers
  EXPECT_EQ(CheckNumbers(cell.numbers()).outcome, ClaimOutcome::kPassed);
  cell.forward_only.entropy[0] += 1e-4;
  EXPECT_EQ(CheckNumbers(cell.numbers()).reason, "entropy-off");
  cell.forward_only.entropy_dtype = "bfloat16";
  EXPECT_EQ(CheckNumbers(cell.numbers()).outcome, ClaimOutcome::kPassed);
}

TEST(NumbersCheckTest, EntropyThatWasAskedForMustBeReported) {
  RightCell cell = MakeCellWithEntropy();
  cell.forward_only.entropy.pop_back();
  ExpectFailed(cell, Stage::kForward, "wrong-shape",
               "in step 1 4 entropies were reported for 5 tokens");
  cell.forward_only.entropy = {6, 7, kNan, 7.5, 6.25};
  ExpectFailed(cell, Stage::kForward, "not-finite",
               "in step 1 the entropy of token 2 is not finite");
  cell.forward_only.entropy.clear();
  ExpectUnseen(cell, Stage::kForward, "in step 1 no entropy was reported");
}

TEST(NumbersCheckTest, AFaultThatTheFloorHidesIsNamedIfItIsPredicted) {
  RightCell cell = MakeRightCell();
  std::vector<double> answer = cell.golden[0].log_probs;
  for (double& value : answer) value += 3 * cell.floor[0].reports.log_probs.mean;
  cell.tensors[0].log_probs = answer;
  EXPECT_EQ(CheckNumbers(cell.numbers()).outcome, ClaimOutcome::kPassed);
  cell.golden[0].predicted["weakest-expert-dropped"] = answer;
  const CheckResult result = CheckNumbers(cell.numbers());
  EXPECT_EQ(result.reason, "log-probs-off");
  EXPECT_EQ(result.message,
            "in step 1 log-probs are 3.0 floors from the right ones, and nearer to those of a "
            "known fault");
  cell.tensors[0].log_probs = cell.golden[0].log_probs;
  EXPECT_EQ(CheckNumbers(cell.numbers()).outcome, ClaimOutcome::kPassed);
}

// The floor of log-probs in bf16 is half an ulp of the largest, 0.03125: the fault that fails the
// check is 0.1 from its answer, within four of these floors but not of the model's own.
TEST(NumbersCheckTest, TheFaultThatFailsTheCheckIsTheOneThatIsNamed) {
  RightCell cell = MakeRightCell();
  cell.reported[0].log_probs_dtype = "bfloat16";
  std::vector<double> answer = cell.golden[0].log_probs;
  for (double& value : answer) value += 0.22;
  cell.golden[0].predicted["no-rope"] = answer;
  for (double& value : cell.tensors[0].log_probs) value += 0.12;
  EXPECT_EQ(CheckNumbers(cell.numbers()).reason, "log-probs-off");
  const NumbersInput input = cell.numbers();
  ASSERT_TRUE(NearestWrongAnswer(input));
  EXPECT_EQ(NearestWrongAnswer(input)->answer, "no-rope");
}

TEST(NumbersCheckTest, LastPositionOfADocumentIsNotJudged) {
  RightCell cell = MakeRightCell();
  cell.tensors[0].log_probs[2] = kNan;
  cell.tensors[0].log_probs[4] = 100;
  EXPECT_EQ(CheckNumbers(cell.numbers()).outcome, ClaimOutcome::kPassed);
}

TEST(NumbersCheckTest, GradientOfOneTensorIsNamed) {
  RightCell cell = MakeRightCell();
  cell.tensors[1].tensors["a"].gradient = {0.36, -0.48};
  ExpectFailed(cell, Stage::kGolden, "gradients-off",
               "the gradient of a in step 2 is off by 1.6, 80.0 times the floor (4 allowed)");
}

TEST(NumbersCheckTest, NormOfAWholeGradientIsComparedToo) {
  RightCell cell = MakeRightCell();
  cell.tensors[0].tensors["b"].norms[0] = 0.4;
  ExpectFailed(cell, Stage::kGolden, "gradients-off",
               "the gradient norm of b in step 1 is off by 0.5, 25.0 times the floor (4 allowed)");
}

// An expert that gets no token in one step.
RightCell WithoutAGradientInStep2() {
  RightCell cell = MakeRightCell();
  cell.golden[1].tensors["a"] = {{0, 0}, 0};
  cell.tensors[1].tensors["a"].gradient = {0, 0};
  cell.tensors[1].tensors["a"].norms[0] = 0;
  cell.floor[1].gradients["a"] = 0;
  cell.floor[1].shares["a"] = 0.02;
  return cell;
}

TEST(NumbersCheckTest, GradientThatTheGoldenLacksIsMeasuredByAllGradients) {
  RightCell cell = WithoutAGradientInStep2();
  EXPECT_EQ(CheckNumbers(cell.numbers()).outcome, ClaimOutcome::kPassed);
  // All gradients of the golden have the norm 0.8: of b alone.
  cell.tensors[1].tensors["a"].gradient = {0.05, 0};
  cell.tensors[1].tensors["a"].norms[0] = 0.06;
  EXPECT_EQ(CheckNumbers(cell.numbers()).outcome, ClaimOutcome::kPassed);
  cell.tensors[1].tensors["a"].norms[0] = 0.08;
  ExpectFailed(cell, Stage::kGolden, "gradients-off",
               "the gradient (zero in the golden; as a share of the total norm) of a in step 2 is "
               "off by 0.1, 5.0 times the floor (4 allowed)");
}

TEST(NumbersCheckTest, WithoutAFloorAGradientThatTheGoldenLacksMustBeZero) {
  RightCell cell = WithoutAGradientInStep2();
  cell.floor[1].shares.clear();
  EXPECT_EQ(CheckNumbers(cell.numbers()).outcome, ClaimOutcome::kPassed);
  cell.tensors[1].tensors["a"].gradient[1] = 1e-9;  // its norm was not seen
  EXPECT_EQ(CheckNumbers(cell.numbers()).reason, "gradients-off");
}

TEST(NumbersCheckTest, TotalNormIsRelative) {
  RightCell cell = MakeRightCell();
  cell.reported[0].grad_norm = 5.5;
  ExpectFailed(cell, Stage::kGolden, "grad-norm-off",
               "the total gradient norm in step 1 is off by 0.1, 25.0 times the floor (4 allowed)");
}

TEST(NumbersCheckTest, FloorOfANormIsNotBelowTorchsOwnReduction) {
  RightCell cell = MakeRightCell();
  cell.floor[0].total_norm = 1e-9;
  cell.reported[0].grad_norm = 5 * (1 + 2e-5);
  EXPECT_EQ(CheckNumbers(cell.numbers()).outcome, ClaimOutcome::kPassed);
}

TEST(NumbersCheckTest, FloorOfZeroAllowsOnlyTheGolden) {
  RightCell cell = MakeRightCell();
  cell.floor[0].reports.loss = 0;
  EXPECT_EQ(CheckNumbers(cell.numbers()).outcome, ClaimOutcome::kPassed);
  *cell.reported[0].loss += 1e-9;
  ExpectFailed(cell, Stage::kGolden, "loss-off", "the loss in step 1 is off by 1e-09");
}

TEST(NumbersCheckTest, ReportInACoarseTypeHasAWiderFloor) {
  RightCell cell = MakeRightCell();
  for (double& value : cell.tensors[0].log_probs) value += 0.1;  // bf16 has steps of 1/16 from 8 on
  EXPECT_EQ(CheckNumbers(cell.numbers()).reason, "log-probs-off");
  cell.reported[0].log_probs_dtype = "bfloat16";
  EXPECT_EQ(CheckNumbers(cell.numbers()).outcome, ClaimOutcome::kPassed);
}

// Log-probs and loss that are computed in fp32 have a narrower floor at precision bf16.
TEST(NumbersCheckTest, ReportInFp32HasANarrowerFloor) {
  RightCell cell = MakeRightCell();
  for (FloorStep& floor : cell.floor)
    floor.in_fp32 = {.loss = 0.001, .log_probs = {0.002, 0.005, 0.006}};
  const auto reason = [&] { return CheckNumbers(cell.numbers()).reason; };
  EXPECT_EQ(CheckNumbers(cell.numbers()).outcome, ClaimOutcome::kPassed);
  cell.reported[0].loss = 7.5 + 0.0051;
  EXPECT_EQ(reason(), "");  // the log-probs are bf16 numbers, so the loss may be their mean
  cell.tensors[0].log_probs[0] += 1e-3;
  EXPECT_EQ(reason(), "loss-off");
  cell.reported[0].loss = 7.53125;
  EXPECT_EQ(reason(), "");  // a loss in bf16
  cell.reported[0].loss = 7.5;
  cell.tensors[0].log_probs[0] += 0.03;
  EXPECT_EQ(reason(), "log-probs-off");
  cell.reported[0].log_probs_dtype = "bfloat16";
  EXPECT_EQ(reason(), "");
}

// An error between the two floors is found or not, and the sensitivity to it follows the cell.
TEST(NumbersCheckTest, EvidenceSaysInWhichTypeACellReports) {
  RightCell cell = MakeRightCell();
  for (FloorStep& floor : cell.floor)
    floor.in_fp32 = {.loss = 0.001, .log_probs = {0.002, 0.005, 0.006}};
  const auto types = [&] {
    return *FactsOf<NumbersFacts>(CheckNumbers(cell.numbers())).reported_in_fp32;
  };
  const auto least = [&] { return SensitivityOf(cell.golden, cell.floor, 4, types()); };
  EXPECT_EQ(types(), ReportTypes()) << "log-probs that are bf16 numbers";
  EXPECT_DOUBLE_EQ(least().log_probs_mean, 0.08);
  for (StepTensors& step : cell.tensors) {
    for (double& value : step.log_probs) value += 1e-4;
  }
  EXPECT_EQ(types(), (ReportTypes{.fp32_log_probs = true})) << "a loss that is a bf16 number";
  EXPECT_DOUBLE_EQ(least().log_probs_mean, 0.008);
  for (ObservedStep& step : cell.reported) *step.loss += 1e-4;
  EXPECT_EQ(types(), (ReportTypes{true, true}));
  for (double& value : cell.tensors[1].log_probs) value += 0.02;
  EXPECT_EQ(CheckNumbers(cell.numbers()).reason, "log-probs-off");
  cell.reported[1].log_probs_dtype = "bfloat16";
  EXPECT_EQ(CheckNumbers(cell.numbers()).reason, "");
  EXPECT_EQ(types(), ReportTypes()) << "one step in bf16";
  EXPECT_EQ(FactsOf<NumbersFacts>(Finding()).reported_in_fp32, std::nullopt) << "older evidence";
}

TEST(NumbersCheckTest, NumberThatIsNotFiniteFailsAtItsStage) {
  RightCell cell = MakeRightCell();
  cell.tensors[0].log_probs[1] = kNan;
  ExpectFailed(cell, Stage::kForward, "not-finite",
               "in step 1 the log-prob of token 1 is not finite");
  cell = MakeRightCell();
  cell.reported[1].loss = kNan;
  ExpectFailed(cell, Stage::kForward, "not-finite", "in step 2 the loss is not finite");
  cell = MakeRightCell();
  cell.reported[0].grad_norm = kNan;
  ExpectFailed(cell, Stage::kBackward, "not-finite",
               "in step 1 the total gradient norm is not finite");
  cell = MakeRightCell();
  cell.tensors[1].tensors["b"].gradient[0] = std::numeric_limits<double>::infinity();
  ExpectFailed(cell, Stage::kBackward, "not-finite", "in step 2 the gradient of b is not finite");
}

TEST(NumbersCheckTest, WrongSizeFailsAtItsStage) {
  RightCell cell = MakeRightCell();
  cell.tensors[0].log_probs.pop_back();
  ExpectFailed(cell, Stage::kForward, "wrong-shape",
               "in step 1 4 log-probs were reported for 5 tokens");
  cell = MakeRightCell();
  cell.tensors[0].tensors["b"].gradient = {1, 2};
  ExpectFailed(cell, Stage::kBackward, "wrong-shape",
               "in step 1 the gradient of b was sampled at 2 places, not 1");
}

TEST(NumbersCheckTest, MissingReportIsUnseen) {
  RightCell cell = MakeRightCell();
  cell.tensors[1].log_probs.clear();
  ExpectUnseen(cell, Stage::kForward, "in step 2 no log-probs were reported");
  cell = MakeRightCell();
  cell.reported[0].loss.reset();
  ExpectUnseen(cell, Stage::kForward, "in step 1 no loss was reported");
  cell = MakeRightCell();
  cell.reported[0].grad_norm.reset();
  ExpectUnseen(cell, Stage::kBackward, "in step 1 no total gradient norm was reported");
  cell = MakeRightCell();
  cell.tensors[0].tensors.erase("a");
  ExpectUnseen(cell, Stage::kBackward, "in step 1 the gradient of a was not seen");
  cell = MakeRightCell();
  cell.reported.pop_back();
  cell.tensors.pop_back();
  ExpectUnseen(cell, Stage::kStep, "1 of 2 steps were reported");
}

TEST(NumbersCheckTest, MissingReportHidesNoError) {
  RightCell cell = MakeRightCell();
  cell.tensors[0].tensors.erase("a");
  cell.reported[1].grad_norm.reset();
  cell.tensors[1].tensors["b"].gradient = {0.8};
  ExpectFailed(cell, Stage::kGolden, "gradients-off",
               "the gradient of b in step 2 is off by 2, 100.0 times the floor (4 allowed)");
  cell.tensors[1].log_probs.clear();
  cell.tensors[0].log_probs[0] = kNan;
  ExpectFailed(cell, Stage::kForward, "not-finite",
               "in step 1 the log-prob of token 0 is not finite");
}

TEST(NumbersCheckTest, TensorThatTheGoldenLacksIsNotJudged) {
  RightCell cell = MakeRightCell();
  cell.tensors[0].tensors["lm_head.weight"].gradient = {kNan};
  EXPECT_EQ(CheckNumbers(cell.numbers()).outcome, ClaimOutcome::kPassed);
}

TEST(NumbersCheckTest, ReferenceDataOfAnotherProbeIsUnreadable) {
  RightCell cell = MakeRightCell();
  cell.floor.pop_back();
  EXPECT_EQ(CheckNumbers(cell.numbers()).outcome, ClaimOutcome::kUnreadable);
  cell = MakeRightCell();
  cell.floor[0].gradients.erase("a");
  EXPECT_EQ(CheckNumbers(cell.numbers()).message, "the floor has no gradient of a");
  cell = MakeRightCell();
  cell.golden.clear();
  cell.floor.clear();
  cell.batches.clear();
  EXPECT_EQ(CheckNumbers(cell.numbers()).outcome, ClaimOutcome::kUnreadable);
}

}  // namespace
}  // namespace bkm
