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
      CheckBackend(Built({"FlexAttention", "FlexAttention"}, {"flex_attention"}), "flex");
  EXPECT_EQ(result.outcome, CheckOutcome::kPassed);
  EXPECT_EQ(
      result.evidence,
      Json({{"asked", "flex"}, {"built", {{"FlexAttention", 2}}}, {"ops", {"flex_attention"}}}));
}

TEST(BackendCheckTest, AnotherBackendThatWasBuiltIsAnIgnoredOverride) {
  const CheckResult result =
      CheckBackend(Built({"ScaledDotProductAttention", "ScaledDotProductAttention"}), "flex");
  EXPECT_EQ(result.outcome, CheckOutcome::kFailed);
  EXPECT_EQ(result.stage, Stage::kBackend);
  EXPECT_EQ(result.reason, "override-ignored");
  EXPECT_EQ(result.message,
            "asked for flex, but sdpa was built in every layer (layers.0: "
            "ScaledDotProductAttention)");
}

TEST(BackendCheckTest, OneLayerOfAnotherBackendIsEnough) {
  EXPECT_EQ(CheckBackend(Built({"VarlenAttention", "FlexAttention"}), "varlen").message,
            "asked for varlen, but flex was built in 1 of 2 layers (layers.1: FlexAttention)");
}

TEST(BackendCheckTest, CallableThatRanDecidesForHf) {
  const std::string sdpa = "transformers.integrations.sdpa_attention.sdpa_attention_forward";
  EXPECT_EQ(CheckBackend(Called({sdpa, sdpa}, "sdpa"), "sdpa").outcome, CheckOutcome::kPassed);
  EXPECT_EQ(CheckBackend(Called({sdpa}, "sdpa"), "eager").reason, "override-ignored");
  EXPECT_EQ(CheckBackend(Called({sdpa}, "flex_attention"), "flex_attention").reason,
            "other-backend-ran");
}

TEST(BackendCheckTest, OpsOfAnotherBackendFail) {
  const CheckResult result = CheckBackend(
      Built({"FlexAttention"}, {"aten::_scaled_dot_product_flash_attention_for_cpu"}), "flex");
  EXPECT_EQ(result.reason, "other-backend-ran");
  EXPECT_EQ(result.message, "flex was built, but the ops of the forward pass are those of sdpa");
}

TEST(BackendCheckTest, NothingSeenIsUnseenNotPassed) {
  EXPECT_EQ(CheckBackend(Observation(), "flex").outcome, CheckOutcome::kUnseen);
  EXPECT_EQ(CheckBackend(Built({"Qwen3Attention"}, {"flex_attention"}), "flex").reason,
            "witness-missing");
}

TEST(BackendCheckTest, AttentionThatTheVocabularyLacksIsUnseen) {
  EXPECT_EQ(CheckBackend(Built({"NewAttention"}), "ring").message,
            "no witness knows the attention 'ring' (add it to "
            "harness/judge/attention_vocabulary.cc)");
}

}  // namespace
}  // namespace bkm
