// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/attention_vocabulary.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

std::string NameOf(const AttentionBackend* backend) {
  return backend == nullptr ? "none" : std::string(backend->name);
}
std::string OfName(absl::string_view name) { return NameOf(BackendOfName(name)); }

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

std::string OtherThan(const char* asked, const std::vector<std::string>& ops) {
  const ShownBackend shown = BackendOfOps(ops, *AskedBackend(asked));
  return std::string(shown.is_asked ? "asked" : "") +
         (shown.other ? std::string(shown.other->name) : "");
}

TEST(AttentionVocabularyTest, OpsShowTheAskedBackendAndAnyOther) {
  const std::string sdpa = "aten::_scaled_dot_product_flash_attention_for_cpu";
  EXPECT_EQ(OtherThan("eager", {"aten::_softmax", "aten::bmm"}), "asked");
  EXPECT_EQ(OtherThan("flex", {"aten::_softmax", "aten::bmm"}), "eager");
  EXPECT_EQ(OtherThan("flex", {"aten::_safe_softmax", "aten::bmm", "flex_attention"}), "asked");
  EXPECT_EQ(OtherThan("flex_flash", {"flex_attention"}), "asked");
  EXPECT_EQ(OtherThan("sdpa", {sdpa, "aten::bmm", "aten::_softmax"}), "asked");
  EXPECT_EQ(OtherThan("flex", {"flex_attention", sdpa}), "askedsdpa") << "one beside the other";
  EXPECT_EQ(OtherThan("flash_attention_2", {sdpa}), "sdpa");
  EXPECT_EQ(OtherThan("varlen", {"torch_attn::_varlen_attn", "aten::_flash_attention_forward"}),
            "asked");
  EXPECT_EQ(OtherThan("varlen", {"aten::mm"}), "");
}

TEST(AttentionVocabularyTest, NodesOfBothFlashAttentionsAreNamedAlike) {
  for (const char* asked : {"flash_attention_2", "flash_attention_3"}) {
    EXPECT_TRUE(IsNodeOf("FlashAttnVarlenFuncBackward", *AskedBackend(asked)));
    EXPECT_FALSE(IsNodeOf("ScaledDotProductFlashAttentionBackward0", *AskedBackend(asked)));
  }
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
