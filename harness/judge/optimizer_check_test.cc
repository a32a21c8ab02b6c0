// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/optimizer_check.h"

#include <gtest/gtest.h>

#include <limits>

#include "harness/judge/testing_steps.h"

namespace bkm {
namespace {

CheckResult Check(const RightCell& cell) {
  return CheckOptimizer(cell.optimizer, cell.reported, cell.tensors);
}

// The engine runs with other settings than it reports.
RightCell RanWith(const OptimizerSettings& settings) {
  RightCell cell = MakeRightCell();
  std::map<std::string, AdamWMoments> moments;
  std::map<std::string, std::vector<double>> parameters;
  for (StepTensors& step : cell.tensors) {
    for (auto& [name, tensor] : step.tensors) {
      if (parameters.contains(name)) tensor.before = parameters[name];
      std::vector<double> after = tensor.before;
      AdamWStep(settings, tensor.gradient, moments[name], after);
      for (double& value : after) value = static_cast<float>(value);
      tensor.after = parameters[name] = after;
    }
  }
  return cell;
}

TEST(OptimizerCheckTest, AdamWRoundedToFp32Passes) {
  const CheckResult result = Check(MakeRightCell());
  EXPECT_EQ(result.outcome, ClaimOutcome::kPassed) << result.message;
  EXPECT_EQ(result.stage, Stage::kStep);
  EXPECT_EQ(result.facts["parameters"], "fp32");
  EXPECT_LT(result.facts["worst_update"]["tolerances"].get<double>(), 1);
}

TEST(OptimizerCheckTest, EverySettingShowsInTheUpdate) {
  const OptimizerSettings right = MakeRightCell().optimizer;
  OptimizerSettings other = right;
  other.weight_decay = 0;
  EXPECT_EQ(Check(RanWith(other)).reason, "update-off");
  other = right;
  other.learning_rate *= 1.01;
  EXPECT_EQ(Check(RanWith(other)).reason, "update-off");
  other = right;
  other.epsilon = 1e-8;
  EXPECT_EQ(Check(RanWith(other)).reason, "update-off");
}

TEST(OptimizerCheckTest, WhatNeedNotDecayIsToldByItsName) {
  RightCell cell = MakeRightCell();
  for (ObservedStep& step : cell.reported) {
    step.param_groups.push_back(step.param_groups.front());
    step.param_groups.back().weight_decay = 0;
  }
  EXPECT_EQ(Check(cell).reason, "override-ignored");
  cell.optimizer.undecayed = "norms-and-biases";
  EXPECT_EQ(Check(cell).outcome, ClaimOutcome::kPassed);
  // A parameter that decayed though its name says that it does not.
  for (StepTensors& step : cell.tensors) {
    step.tensors["model.norm.weight"] = step.tensors.at("b");
    step.tensors.erase("b");
  }
  EXPECT_EQ(Check(cell).reason, "update-off");
}

TEST(OptimizerCheckTest, MomentsAreCarriedFromStepToStep) {
  RightCell cell = MakeRightCell();
  // A different gradient in step 2: with fresh moments, the update would again be a sign.
  for (auto& [name, tensor] : cell.tensors[1].tensors) {
    for (double& value : tensor.gradient) value *= -0.1;
    tensor.norms[0] *= 0.1;
  }
  cell.reported[1].grad_norm = 0.1;
  EXPECT_EQ(Check(cell).reason, "update-off");
  cell = RanWith(cell.optimizer);
  EXPECT_EQ(Check(cell).outcome, ClaimOutcome::kPassed);
}

// An element of a cell that ran on a CPU with torch 2.13.0: in step 2, the parts of the first
// moment cancel each other but for 3 parts in 100,000, and the parameter is small.
RightCell CancelledMoment() {
  RightCell cell = MakeRightCell();
  const double gradients[] = {-0.0010791164822876453, 0.000917306519113481};
  const double parameters[] = {-0.0001804604980861768, 2.57874489761889e-06, 2.573074425527011e-06};
  for (size_t k = 0; k < 2; ++k) {
    SampledTensor& tensor = cell.tensors[k].tensors["b"];
    tensor = {.gradient = {gradients[k]}, .before = {parameters[k]}, .after = {parameters[k + 1]}};
    cell.reported[k].param_groups = {{2e-4, 0.85, 0.97, 1e-4, 0.03}};
  }
  return cell;
}

TEST(OptimizerCheckTest, AMomentThatCancelsMayHaveItsRoundings) {
  RightCell cell = CancelledMoment();
  EXPECT_TRUE(ExpectedUpdates(cell.optimizer, cell.reported, cell.tensors, 1)["b"].is_right[0]);
  // Ten times the rounding is none.
  cell.tensors[1].tensors["b"].after[0] -= 1e-10;
  EXPECT_FALSE(ExpectedUpdates(cell.optimizer, cell.reported, cell.tensors, 1)["b"].is_right[0]);
}

TEST(OptimizerCheckTest, SkippedUpdateFailsAndIsDescribed) {
  RightCell cell = MakeRightCell();
  cell.tensors[1].tensors["b"].after = cell.tensors[1].tensors["b"].before;
  const CheckResult result = Check(cell);
  EXPECT_EQ(result.reason, "update-off");
  EXPECT_EQ(
      result.message,
      "AdamW moves b from 0.70019579 to 0.70039156 in step 2, but the cell moved it to 0.70019579");
}

TEST(OptimizerCheckTest, ParameterThatMovesBetweenStepsFails) {
  RightCell cell = MakeRightCell();
  cell.tensors[1].tensors["a"].before[0] += 0.01;
  EXPECT_EQ(Check(cell).message, "a changed between steps 1 and 2");
}

TEST(OptimizerCheckTest, GradientsThatWereNotClippedFail) {
  RightCell cell = MakeRightCell();
  for (auto& [name, tensor] : cell.tensors[0].tensors) tensor.norms[0] *= 5;
  const CheckResult result = Check(cell);
  EXPECT_EQ(result.reason, "clipping-off");
  EXPECT_EQ(result.message,
            "in step 1 the gradient norm after clipping is 5, but clipping 5 to 1 leaves 1");
}

TEST(OptimizerCheckTest, SmallNormIsNotClipped) {
  RightCell cell = MakeRightCell();
  cell.reported[0].grad_norm = 0.5;
  for (auto& [name, tensor] : cell.tensors[0].tensors) tensor.norms[0] *= 0.5;
  EXPECT_EQ(Check(cell).outcome, ClaimOutcome::kPassed);
}

TEST(OptimizerCheckTest, LearningRateOfEveryGroupIsTheAskedOne) {
  RightCell cell = MakeRightCell();
  cell.reported[1].param_groups[0].learning_rate = 5e-5;
  const CheckResult result = Check(cell);
  EXPECT_EQ(result.reason, "learning-rate-off");
  EXPECT_EQ(result.message, "in step 2 the learning rate is 5e-05, not 0.0002");
}

TEST(OptimizerCheckTest, ReplacedSettingIsAnIgnoredOverride) {
  RightCell cell = MakeRightCell();
  for (ObservedStep& step : cell.reported) step.param_groups[0].beta2 = 0.95;
  EXPECT_EQ(Check(cell).reason, "override-ignored");
  EXPECT_EQ(Check(cell).message, "the optimizer's beta2 is 0.95, not 0.97");
}

TEST(OptimizerCheckTest, EachGroupHasTheAskedDecay) {
  RightCell cell = MakeRightCell();
  for (ObservedStep& step : cell.reported) {
    step.param_groups.push_back(step.param_groups[0]);
    step.param_groups[1].weight_decay = 0;
  }
  EXPECT_EQ(Check(cell).reason, "override-ignored");
  EXPECT_EQ(Check(cell).message,
            "the optimizer's weight decay is 0, not 0.03 in group 2 of 2 groups of parameters");
}

TEST(OptimizerCheckTest, ANormBelowTheAskedOneIsOffToo) {
  RightCell cell = MakeRightCell();
  for (auto& [name, tensor] : cell.tensors[0].tensors) tensor.norms[0] *= 0.5;
  EXPECT_EQ(Check(cell).reason, "clipping-off");
}

TEST(OptimizerCheckTest, TheErrorOfTorchsOwnSumIsAllowed) {
  RightCell cell = MakeRightCell();
  for (auto& [name, tensor] : cell.tensors[0].tensors) tensor.norms[0] *= 1.0025;
  EXPECT_EQ(Check(cell).reason, "clipping-off");
  cell.reported[0].norm_error = 0.0008;
  EXPECT_EQ(Check(cell).outcome, ClaimOutcome::kPassed);
  cell.reported[0].norm_error = 0.0006;
  EXPECT_EQ(Check(cell).reason, "clipping-off");
  cell.reported[0].norm_error = 0.1;
  EXPECT_EQ(Check(cell).reason, "clipping-off") << "more than a sum loses";
}

TEST(OptimizerCheckTest, ANormOfSomeGradientsProvesNothing) {
  RightCell cell = MakeRightCell();
  for (StepTensors& step : cell.tensors) step.tensors.erase("b");
  EXPECT_EQ(Check(cell).reason, "clipping-off");
  const CheckResult result =
      CheckOptimizer(cell.optimizer, cell.reported, cell.tensors, "fp32", "one of two was seen");
  EXPECT_EQ(result.outcome, ClaimOutcome::kUnseen);
  EXPECT_EQ(result.message,
            "in step 1 one of two was seen: too little to tell how gradients were clipped");
}

TEST(OptimizerCheckTest, Bf16ParametersAreHeldToBf16) {
  RightCell cell = MakeRightCell();
  for (StepTensors& step : cell.tensors) {
    for (auto& [name, tensor] : step.tensors) {
      tensor.before.assign(tensor.before.size(), 0.5);
      tensor.after = tensor.before;  // an update of 1e-4 is lost in bf16
    }
  }
  const CheckResult asked = CheckOptimizer(cell.optimizer, cell.reported, cell.tensors, "bf16");
  EXPECT_EQ(asked.outcome, ClaimOutcome::kPassed) << asked.message;
  EXPECT_EQ(asked.facts["parameters"], "bf16");
  const CheckResult result = Check(cell);
  EXPECT_EQ(result.reason, "precision-ignored");
  EXPECT_EQ(result.message, "the parameters are kept in bf16, not in fp32");
}

// As transformers does with experts that it reads from MXFP4.
TEST(OptimizerCheckTest, OneTensorInBf16IsNamed) {
  RightCell cell = MakeRightCell();
  for (size_t k = 0; k < cell.tensors.size(); ++k) {
    cell.tensors[k].tensors["b"].before = {k == 0 ? 0.75 : 0.74609375};
    cell.tensors[k].tensors["b"].after = {0.74609375};
  }
  CheckResult result = Check(cell);
  EXPECT_EQ(result.reason, "precision-ignored");
  EXPECT_EQ(result.message, "b is kept in bf16, not in fp32");
  EXPECT_EQ(result.facts["worst_update"]["tensor"], "b");
  for (StepTensors& step : cell.tensors) step.tensors["b"].before = step.tensors["b"].after = {0.5};
  result = Check(cell);
  EXPECT_EQ(result.reason, "update-off") << "it never moved";
}

TEST(OptimizerCheckTest, NanIsNotAnUpdate) {
  RightCell cell = MakeRightCell();
  cell.tensors[1].tensors["a"].after[1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Check(cell).reason, "update-off");
}

TEST(OptimizerCheckTest, WhatWasNotSeenIsUnseen) {
  RightCell cell = MakeRightCell();
  cell.reported[1].param_groups.clear();
  EXPECT_EQ(Check(cell).message, "in step 2 the optimizer's settings were not seen");
  cell = MakeRightCell();
  cell.tensors[1].tensors["a"].after.clear();
  EXPECT_EQ(Check(cell).message, "in step 2 the update of a was not seen");
  cell = MakeRightCell();
  cell.reported[0].grad_norm.reset();
  EXPECT_EQ(Check(cell).outcome, ClaimOutcome::kUnseen);
  cell = MakeRightCell();
  cell.reported.clear();
  cell.tensors.clear();
  EXPECT_EQ(Check(cell).message, "no optimizer step was seen");
}

}  // namespace
}  // namespace bkm
