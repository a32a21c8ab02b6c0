// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/attention_vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bkm {
namespace {

using ::testing::ElementsAre;

std::string NameOf(const AttentionBackend* backend) {
  return backend == nullptr ? "none" : std::string(backend->name);
}
std::string OfName(absl::string_view name) { return NameOf(BackendOfName(name)); }
std::vector<std::string> OfOps(std::vector<std::string> ops) {
  std::vector<std::string> names;
  for (const AttentionBackend* backend : BackendsOfOps(ops)) names.push_back(NameOf(backend));
  return names;
}

TEST(AttentionVocabularyTest, ClassesAndCallablesBelongToTheirBackend) {
  EXPECT_EQ(OfName("FlexAttention"), "flex");
  EXPECT_EQ(OfName("FlexAttentionWrapper"), "flex");
  EXPECT_EQ(OfName("FlexAttention.Config"), "flex");
  EXPECT_EQ(OfName("VarlenAttentionWrapper"), "varlen");
  EXPECT_EQ(OfName("ScaledDotProductAttentionWrapper"), "sdpa");
  EXPECT_EQ(OfName("transformers.integrations.sdpa_attention.sdpa_attention_forward"), "sdpa");
  EXPECT_EQ(OfName("transformers.integrations.flex_attention.flex_attention_forward"), "flex");
  EXPECT_EQ(OfName("transformers.models.qwen3.modeling_qwen3.eager_attention_forward"), "eager");
  EXPECT_EQ(OfName("flash_attention_2"), "flash_attention_2");
  EXPECT_EQ(OfName("Qwen3Attention"), "none");
  EXPECT_EQ(OfName("VarlenMetadata"), "none");
}

TEST(AttentionVocabularyTest, FlashAttentionsShareTheirCallable) {
  const char* callable = "transformers.integrations.flash_attention.flash_attention_forward";
  EXPECT_TRUE(IsNamedAfter(callable, *AskedBackend("flash_attention_2")));
  EXPECT_TRUE(IsNamedAfter(callable, *AskedBackend("flash_attention_3")));
  EXPECT_FALSE(IsNamedAfter("flash_attention_2", *AskedBackend("flash_attention_3")));
}

TEST(AttentionVocabularyTest, OpsWitnessTheirBackend) {
  EXPECT_THAT(OfOps({"aten::_softmax", "aten::bmm"}), ElementsAre("eager"));
  EXPECT_THAT(OfOps({"aten::_safe_softmax", "aten::bmm", "flex_attention"}),
              ElementsAre("flex_flash", "flex"));
  EXPECT_THAT(
      OfOps({"aten::_scaled_dot_product_flash_attention_for_cpu", "aten::bmm", "aten::_softmax"}),
      ElementsAre("sdpa"));
  EXPECT_THAT(OfOps({"torch_attn::_varlen_attn", "aten::_flash_attention_forward"}),
              ElementsAre("varlen"));
  EXPECT_THAT(OfOps({"aten::mm"}), ElementsAre());
}

TEST(AttentionVocabularyTest, MessageNamesABackendInAnySpelling) {
  const AttentionBackend& flash = *AskedBackend("flash_attention_2");
  EXPECT_TRUE(Names("FlashAttention2 has been toggled on", flash));
  EXPECT_TRUE(Names("Flash Attention 2 is not available", flash));
  EXPECT_TRUE(Names("attn_implementation=\"flash_attention_2\"", flash));
  EXPECT_TRUE(Names("Only varlen and flex attn masks", *AskedBackend("flex")));
  EXPECT_FALSE(Names("must be an instance of VarlenMetadata", *AskedBackend("varlen")));
  EXPECT_FALSE(Names("be flexible", *AskedBackend("flex")));
}

TEST(AttentionVocabularyTest, ShortOptionsAreNotLookedFor) {
  EXPECT_TRUE(NamesOption("spmd_backend foo not supported", "spmd_backend"));
  EXPECT_FALSE(NamesOption("tp is 1", "tp"));
}

}  // namespace
}  // namespace bkm
