// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/backend_check.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

Observation Built(const std::vector<std::string>& classes, std::vector<std::string> ops = {}) {
  Observation observation;
  for (size_t i = 0; i < classes.size(); ++i)
    observation.layers.push_back({absl::StrCat("layers.", i), classes[i], "m"});
  observation.ops = std::move(ops);
  return observation;
}

Observation Called(std::vector<std::string> callables, std::string configured) {
  Observation observation = Built({"Qwen3Attention"});
  observation.called = std::move(callables);
  observation.configured = std::move(configured);
  return observation;
}

TEST(BackendCheckTest, AskedBackendThatWasBuiltAndRanPasses) {
  const CheckResult result =
      CheckBackend(Built({"FlexAttention", "FlexAttention"}, {"flex_attention"}), {"flex"});
  EXPECT_EQ(result.outcome, ClaimOutcome::kPassed);
  EXPECT_EQ(
      result.facts,
      Json({{"asked", "flex"}, {"built", {{"FlexAttention", 2}}}, {"ops", {"flex_attention"}}}));
}

TEST(BackendCheckTest, AnotherBackendThatWasBuiltIsAnIgnoredOverride) {
  const CheckResult result =
      CheckBackend(Built({"ScaledDotProductAttention", "ScaledDotProductAttention"}), {"flex"});
  EXPECT_EQ(result.outcome, ClaimOutcome::kFailed);
  EXPECT_EQ(result.stage, Stage::kBackend);
  EXPECT_EQ(result.reason, "override-ignored");
  EXPECT_EQ(result.message,
            "asked for flex, but sdpa was built in every layer (layers.0: "
            "ScaledDotProductAttention)");
}

TEST(BackendCheckTest, AControlThatAskedForNothingIsNotWrong) {
  Observation observation = Built({"FlexAttention"});
  const AskedAttention varlen = {.name = "varlen", .layers = 1, .of_control = true};
  EXPECT_EQ(CheckBackend(observation, varlen).reason, "override-ignored");
  observation.not_asked = "the library has one attention";
  const CheckResult result = CheckBackend(observation, varlen);
  EXPECT_EQ(result.outcome, ClaimOutcome::kUnseen);
  EXPECT_EQ(result.reason, "not-offered");
  EXPECT_EQ(result.message,
            "the library has one attention: varlen cannot be asked for, and it has flex");
  EXPECT_EQ(CheckBackend(observation, {.name = "flex", .layers = 1, .of_control = true}).outcome,
            ClaimOutcome::kPassed)
      << "it has what was asked for";
  EXPECT_EQ(CheckBackend(observation, {.name = "varlen", .layers = 1}).reason, "override-ignored")
      << "an engine is always asked";
  // The same where the callables show it.
  observation = Called({"transformers.integrations.sdpa_attention.sdpa_attention_forward"}, "sdpa");
  observation.not_asked = "the library has one attention";
  EXPECT_EQ(CheckBackend(observation, {.name = "eager", .layers = 1, .of_control = true}).reason,
            "not-offered");
}

TEST(BackendCheckTest, OneLayerOfAnotherBackendIsEnough) {
  EXPECT_EQ(CheckBackend(Built({"VarlenAttention", "FlexAttention"}), {"varlen"}).message,
            "asked for varlen, but flex was built in 1 of 2 layers (layers.1: FlexAttention)");
}

TEST(BackendCheckTest, CallableThatRanDecidesForHf) {
  const std::string sdpa = "transformers.integrations.sdpa_attention.sdpa_attention_forward";
  EXPECT_EQ(CheckBackend(Called({sdpa, sdpa}, {"sdpa"}), {"sdpa"}).outcome, ClaimOutcome::kPassed);
  EXPECT_EQ(CheckBackend(Called({sdpa}, {"sdpa"}), {"eager"}).reason, "override-ignored");
  EXPECT_EQ(CheckBackend(Called({sdpa}, {"flex_attention"}), {"flex_attention"}).reason,
            "other-backend-ran");
}

TEST(BackendCheckTest, OpsOfAnotherBackendFail) {
  const CheckResult result = CheckBackend(
      Built({"FlexAttention"}, {"aten::_scaled_dot_product_flash_attention_for_cpu"}), {"flex"});
  EXPECT_EQ(result.reason, "other-backend-ran");
  EXPECT_EQ(result.message, "flex was built, but the forward pass has ops of sdpa");
}

const std::vector<std::string> kFlexForward = {"flex_attention", "FlexAttentionAutogradOp",
                                               "aten::softmax", "aten::bmm"};
const std::vector<std::string> kFlexBackward = {"FlexAttentionAutogradOpBackward"};
const std::vector<std::string> kPlainBackward = {"BmmBackward0", "SafeSoftmaxBackward0"};

TEST(BackendCheckTest, LayerWhoseCallFallsBackFailsAlthoughItsClassIsRight) {
  Observation observation = Built({"FlexAttention", "FlexAttention"}, {"flex_attention"});
  observation.kernels = {{0, kFlexForward, kFlexBackward},
                         {1,
                          {"aten::scaled_dot_product_attention"},
                          {"ScaledDotProductFlashAttentionForCpuBackward0"}}};
  const CheckResult result = CheckBackend(observation, {"flex"});
  EXPECT_EQ(result.stage, Stage::kBackend);
  EXPECT_EQ(result.reason, "other-backend-ran");
  EXPECT_EQ(result.message,
            "flex was built, but the forward that ran is that of sdpa in 1 of 2 layers (1)");
}

TEST(BackendCheckTest, BackwardOfAnotherBackendFails) {
  Observation observation = Built({"FlexAttention"}, {"flex_attention"});
  observation.kernels = {{0, kFlexForward, kPlainBackward}};
  EXPECT_EQ(CheckBackend(observation, {"flex"}).message,
            "flex was built, but the backward that ran is that of eager in every layer");
}

TEST(BackendCheckTest, KernelsOfTheAskedBackendPassAndAreEvidence) {
  Observation observation = Built({"FlexAttention", "FlexAttention"}, {"flex_attention"});
  observation.kernels = {{0, kFlexForward, kFlexBackward}, {1, kFlexForward, kFlexBackward}};
  const CheckResult result = CheckBackend(observation, {"flex"});
  EXPECT_EQ(result.outcome, ClaimOutcome::kPassed);
  EXPECT_EQ(result.facts["kernels"],
            Json::array({{{"layers", 2}, {"forward", kFlexForward}, {"backward", kFlexBackward}}}));
}

TEST(BackendCheckTest, SdpaThatIsMadeOfPlainOpsHasAPlainBackward) {
  Observation observation = Built({"ScaledDotProductAttention"});
  observation.kernels = {
      {0,
       {"aten::_scaled_dot_product_attention_math", "aten::bmm", "aten::softmax"},
       kPlainBackward}};
  EXPECT_EQ(CheckBackend(observation, {"sdpa"}).outcome, ClaimOutcome::kPassed);
  observation.kernels[0].forward = {"aten::bmm", "aten::softmax"};
  EXPECT_EQ(CheckBackend(observation, {"sdpa"}).reason, "other-backend-ran");
}

TEST(BackendCheckTest, EagerCallableThatCallsSdpaFails) {
  Observation observation =
      Called({"transformers.models.qwen3.modeling_qwen3.eager_attention_forward"}, {"eager"});
  observation.kernels = {{0, {"aten::bmm", "aten::softmax"}, kPlainBackward}};
  EXPECT_EQ(CheckBackend(observation, {"eager"}).outcome, ClaimOutcome::kPassed);
  observation.kernels[0].forward = {"aten::scaled_dot_product_attention"};
  EXPECT_EQ(CheckBackend(observation, {"eager"}).reason, "other-backend-ran");
}

// A finished cell of two layers and two steps, in which flex ran everywhere.
Observation FinishedWithFlex() {
  Observation observation = Built({"FlexAttention", "FlexAttention"}, {"flex_attention"});
  for (int64_t layer : {0, 1})
    observation.kernels.push_back({layer, kFlexForward, kFlexBackward, {1, 1}});
  observation.steps.resize(2);
  for (ObservedStep& step : observation.steps)
    step.attention_nodes = {{kFlexBackward[0], 2}, {"LogSoftmaxBackward0", 1}, {"BmmBackward0", 3}};
  return observation;
}
const AskedAttention kTwoSteps = {"flex", 2, 2};

TEST(BackendCheckTest, EveryLayerOfEveryStepIsProven) {
  EXPECT_EQ(CheckBackend(FinishedWithFlex(), kTwoSteps).outcome, ClaimOutcome::kPassed);
}

TEST(BackendCheckTest, ALayerThatOnlyDidNotRunInOneStepFails) {
  Observation observation = FinishedWithFlex();
  observation.kernels[1].calls = {1, 0};
  const CheckResult result = CheckBackend(observation, kTwoSteps);
  EXPECT_EQ(result.reason, "other-backend-ran");
  EXPECT_EQ(result.message, "flex was built, but it did not run in step 2 in 1 of 2 layers (1)");
}

TEST(BackendCheckTest, AStepThatNobodySawIsUnseen) {
  Observation observation = FinishedWithFlex();
  for (ObservedKernels& kernels : observation.kernels) kernels.calls.clear();
  const CheckResult result = CheckBackend(observation, kTwoSteps);
  EXPECT_EQ(result.outcome, ClaimOutcome::kUnseen) << "an older run";
  EXPECT_EQ(result.message, "no witness saw flex run in step 1 in 2 of 2 layers (0, 1)");
  observation = FinishedWithFlex();
  observation.kernels[0].forward = observation.kernels[0].backward = {"new_attention"};
  EXPECT_EQ(CheckBackend(observation, kTwoSteps).message,
            "no witness saw flex run in step 1 in 1 of 2 layers (0)")
      << "no name that the vocabulary knows";
  EXPECT_EQ(CheckBackend(observation, {"flex", 2, 0}).outcome, ClaimOutcome::kPassed)
      << "a cell that stopped";
}

TEST(BackendCheckTest, ALossThatDependsOnFewerCallsFails) {
  Observation observation = FinishedWithFlex();
  observation.steps[1].attention_nodes[kFlexBackward[0]] = 1;
  const CheckResult result = CheckBackend(observation, kTwoSteps);
  EXPECT_EQ(result.reason, "other-backend-ran");
  EXPECT_EQ(result.message,
            "flex was built, but the loss of step 2 depends on only 1 of the 2 calls that its "
            "layers and micro-batches need");
  observation = FinishedWithFlex();
  observation.steps[0].forwards = 2;
  EXPECT_EQ(CheckBackend(observation, kTwoSteps).reason, "other-backend-ran") << "micro-batches";
}

TEST(BackendCheckTest, ACompiledCallIsWhatItsForwardRan) {
  Observation observation = FinishedWithFlex();
  const std::string kernel = "triton_tem_fused_flex_attention_2";
  for (ObservedKernels& kernels : observation.kernels) {
    kernels.forward = {kernel};
    kernels.backward = {"CompiledFunctionBackward"};
  }
  for (ObservedStep& step : observation.steps)
    step.attention_nodes = {{"CompiledFunctionBackward", 2}, {"LogSoftmaxBackward0", 1}};
  EXPECT_EQ(CheckBackend(observation, kTwoSteps).outcome, ClaimOutcome::kPassed);

  Observation dropped = observation;
  dropped.steps[1].attention_nodes["CompiledFunctionBackward"] = 1;
  EXPECT_EQ(CheckBackend(dropped, kTwoSteps).message,
            "flex was built, but the loss of step 2 depends on only 1 of the 2 calls that its "
            "layers and micro-batches need");
  Observation fallback = observation;
  fallback.kernels[1].forward = {"aten::scaled_dot_product_attention"};
  EXPECT_EQ(CheckBackend(fallback, kTwoSteps).message,
            "flex was built, but the forward that ran is that of sdpa in 1 of 2 layers (1)");
  Observation unnamed = observation;
  unnamed.kernels[1].forward = {"triton_poi_fused_mul_3"};
  EXPECT_NE(CheckBackend(unnamed, kTwoSteps).outcome, ClaimOutcome::kPassed);
}

TEST(BackendCheckTest, ALossThatDependsOnAnotherAttentionTooFails) {
  Observation observation = FinishedWithFlex();
  observation.steps[0].attention_nodes["ScaledDotProductFlashAttentionForCpuBackward0"] = 1;
  EXPECT_EQ(CheckBackend(observation, kTwoSteps).message,
            "flex was built, but the loss of step 1 depends on sdpa, too");
}

TEST(BackendCheckTest, ALossThatNobodyLookedAtIsUnseen) {
  Observation observation = FinishedWithFlex();
  observation.steps[1].attention_nodes.clear();
  EXPECT_EQ(CheckBackend(observation, kTwoSteps).message,
            "nobody saw what the loss of step 2 depends on");
  observation.steps.pop_back();
  EXPECT_EQ(CheckBackend(observation, kTwoSteps).outcome, ClaimOutcome::kUnseen);
}

TEST(BackendCheckTest, PlainOpsInTheBackwardAreNotCounted) {
  Observation observation = Called({"m.eager_attention_forward"}, "eager");
  observation.kernels = {{0, {"aten::bmm", "aten::softmax"}, kPlainBackward, {1}}};
  observation.steps.resize(1);
  observation.steps[0].attention_nodes = {{"BmmBackward0", 2}};
  EXPECT_EQ(CheckBackend(observation, {"eager", 1, 1}).outcome, ClaimOutcome::kPassed);
  observation.steps[0].attention_nodes["ScaledDotProductAttentionBackward0"] = 1;
  EXPECT_EQ(CheckBackend(observation, {"eager", 1, 1}).reason, "other-backend-ran");
}

TEST(BackendCheckTest, OneCallOfAnotherBackendBesideTheAskedOneFails) {
  Observation observation = FinishedWithFlex();
  observation.kernels.push_back(
      {1, {"flex_attention", "aten::scaled_dot_product_attention"}, kFlexBackward, {0, 1}});
  EXPECT_EQ(CheckBackend(observation, kTwoSteps).message,
            "flex was built, but the forward that ran is that of sdpa in 1 of 2 layers (1)");
}

TEST(BackendCheckTest, EveryLayerMustShowWhatItIs) {
  Observation observation = FinishedWithFlex();
  observation.layers[1].class_name = "Mixer";
  EXPECT_EQ(CheckBackend(observation, kTwoSteps).outcome, ClaimOutcome::kUnseen);
}

TEST(BackendCheckTest, NothingSeenIsUnseenNotPassed) {
  EXPECT_EQ(CheckBackend(Observation(), {"flex"}).outcome, ClaimOutcome::kUnseen);
  EXPECT_EQ(CheckBackend(Built({"Qwen3Attention"}, {"flex_attention"}), {"flex"}).reason,
            "witness-missing");
}

TEST(BackendCheckTest, AttentionThatTheVocabularyLacksIsUnseen) {
  EXPECT_EQ(CheckBackend(Built({"NewAttention"}), {"ring"}).message,
            "no witness knows the attention 'ring' (add it to "
            "harness/judge/attention_vocabulary.cc)");
}

}  // namespace
}  // namespace bkm
