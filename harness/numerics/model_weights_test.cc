// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/model_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace bkm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::map<std::string, std::vector<int64_t>> SizesOf(const std::string& family) {
  std::map<std::string, std::vector<int64_t>> sizes;
  for (const WeightShape& weight : WeightsOf(*FindModelShape(family))) {
    EXPECT_TRUE(sizes.emplace(weight.name, weight.shape).second) << weight.name << " twice";
  }
  return sizes;
}

int64_t TotalOf(const std::string& family) {
  int64_t total = 0;
  for (const WeightShape& weight : WeightsOf(*FindModelShape(family))) total += weight.numel();
  return total;
}

TEST(WeightsOfTest, NamesHaveHfLayoutAndTheTiedHeadIsAbsent) {
  ModelShape shape = *FindModelShape("qwen3");
  shape.layers = 1;
  std::vector<std::string> names;
  for (const WeightShape& weight : WeightsOf(shape)) names.push_back(weight.name);
  EXPECT_THAT(
      names, ElementsAre(
                 "model.embed_tokens.weight", "model.layers.0.input_layernorm.weight",
                 "model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.k_proj.weight",
                 "model.layers.0.self_attn.v_proj.weight", "model.layers.0.self_attn.q_norm.weight",
                 "model.layers.0.self_attn.k_norm.weight", "model.layers.0.self_attn.o_proj.weight",
                 "model.layers.0.post_attention_layernorm.weight",
                 "model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.up_proj.weight",
                 "model.layers.0.mlp.down_proj.weight", "model.norm.weight"));
  EXPECT_THAT(WeightsOf(shape)[7].shape, ElementsAre(256, 2048));
  shape.tied = false;
  EXPECT_EQ(WeightsOf(shape).back().name, "lm_head.weight");
}

TEST(WeightsOfTest, GptOssHasSinksBiasesAndItsExpertsInOneTensor) {
  const auto sizes = SizesOf("gpt_oss");
  EXPECT_THAT(sizes.at("model.layers.3.self_attn.sinks"), ElementsAre(64));
  EXPECT_THAT(sizes.at("model.layers.3.self_attn.o_proj.bias"), ElementsAre(256));
  EXPECT_THAT(sizes.at("model.layers.0.mlp.router.bias"), ElementsAre(8));
  EXPECT_THAT(sizes.at("model.layers.0.mlp.experts.gate_up_proj"), ElementsAre(8, 256, 5760));
  EXPECT_THAT(sizes.at("model.layers.0.mlp.experts.down_proj_bias"), ElementsAre(8, 256));
}

TEST(WeightsOfTest, DeepseekHasALatentVectorADenseLayerAndSharedExperts) {
  const auto sizes = SizesOf("deepseek_v3");
  EXPECT_THAT(sizes.at("model.layers.5.self_attn.q_proj.weight"), ElementsAre(16 * 192, 256));
  EXPECT_THAT(sizes.at("model.layers.5.self_attn.kv_a_proj_with_mqa.weight"),
              ElementsAre(512 + 64, 256));
  EXPECT_THAT(sizes.at("model.layers.5.self_attn.kv_b_proj.weight"), ElementsAre(16 * 256, 512));
  EXPECT_THAT(sizes.at("model.layers.0.mlp.gate_proj.weight"), ElementsAre(1024, 256));
  EXPECT_THAT(sizes.at("model.layers.1.mlp.shared_experts.up_proj.weight"), ElementsAre(512, 256));
  EXPECT_THAT(sizes.at("model.layers.1.mlp.experts.7.down_proj.weight"), ElementsAre(256, 256));
}

// The total size, which any changed size moves. HF's classes have the same totals.
TEST(WeightsOfTest, PublishedDeepseekHasAVectorForQueriesToo) {
  const auto sizes = SizesOf("deepseek_v3_published");
  EXPECT_THAT(sizes.at("model.layers.2.self_attn.q_a_proj.weight"), ElementsAre(384, 256));
  EXPECT_THAT(sizes.at("model.layers.2.self_attn.q_a_layernorm.weight"), ElementsAre(384));
  EXPECT_THAT(sizes.at("model.layers.2.self_attn.q_b_proj.weight"), ElementsAre(16 * 192, 384));
  EXPECT_FALSE(sizes.contains("model.layers.2.self_attn.q_proj.weight"));
}

TEST(WeightsOfTest, TotalsAreThoseOfTheLibraries) {
  EXPECT_EQ(TotalOf("qwen3"), 31987968);
  EXPECT_EQ(TotalOf("llama3"), 6163712);
  EXPECT_EQ(TotalOf("gpt_oss"), 81489440);
  EXPECT_EQ(TotalOf("qwen3_moe"), 79726336);
  EXPECT_EQ(TotalOf("deepseek_v3"), 33014016);
}

TEST(WeightsOfTest, GemmaHasFourNormsALayerAroundZero) {
  const ModelShape gemma = *FindModelShape("gemma2");
  int norms = 0;
  for (const WeightShape& weight : WeightsOf(gemma)) {
    if (weight.shape.size() != 1) continue;
    EXPECT_EQ(weight.mean, 0) << weight.name;
    ++norms;
  }
  EXPECT_EQ(norms, 4 * gemma.layers + 1);
}

TEST(WindowOfTest, EveryOtherLayerOfGptOssHasOne) {
  const ModelShape gpt_oss = *FindModelShape("gpt_oss");
  EXPECT_EQ(gpt_oss.WindowOf(0), 128);
  EXPECT_EQ(gpt_oss.WindowOf(1), 0);
  EXPECT_EQ(gpt_oss.WindowOf(2), 128);
  EXPECT_EQ(FindModelShape("qwen3")->WindowOf(0), 0);
  EXPECT_EQ(FindModelShape("gemma2")->WindowOf(0), 32);
  EXPECT_EQ(FindModelShape("gemma2")->WindowOf(1), 0);
}

TEST(BuffersOfTest, OnlyDeepseekHasThemInItsExpertLayers) {
  EXPECT_EQ(BuffersOf(*FindModelShape("deepseek_v3")).size(), 5);
  EXPECT_EQ(BuffersOf(*FindModelShape("deepseek_v3_published")).size(), 2);
  EXPECT_THAT(BuffersOf(*FindModelShape("qwen3_moe")), IsEmpty());
}

absl::StatusOr<ModelShape> WithConfig(const std::string& model,
                                      std::map<std::string, std::string> config) {
  Probe probe;
  probe.model = model;
  probe.config = std::move(config);
  return ShapeOf(probe);
}

TEST(ModelShapesTest, NumbersOfTheConfigurationChangeTheModel) {
  EXPECT_EQ(WithConfig("qwen3", {{"rms_norm_eps", "1e-05"}})->norm_epsilon, 1e-5);
  EXPECT_EQ(WithConfig("llama3", {{"rope_theta", "10000"}})->rope.theta, 1e4);
  EXPECT_EQ(WithConfig("qwen3", {{"num_key_value_heads", "4"}})->kv_heads, 4);
  EXPECT_EQ(WithConfig("gpt_oss", {{"intermediate_size", "320"}})->experts.hidden, 320);
  EXPECT_EQ(WithConfig("gpt_oss", {{"sliding_window", "64"}})->WindowOf(0), 64);
  EXPECT_EQ(WithConfig("gemma2", {{"attn_logit_softcapping", "50"}})->attention_softcap, 50);
  EXPECT_EQ(WithConfig("gemma2", {{"query_pre_attn_scalar", "64"}})->SoftmaxScale(), 0.125);
  EXPECT_EQ(WeightsOf(*WithConfig("qwen3", {{"tie_word_embeddings", "false"}})).back().name,
            "lm_head.weight");
}

// Every name that a probe may have is one that some family has.
TEST(ModelShapesTest, EveryKnownNumberIsImplemented) {
  for (const std::string& name : ConfigNumbers()) {
    const bool is_boolean = name == "tie_word_embeddings" || name == "use_cache";
    const std::string value = is_boolean ? "true" : "8";
    const bool is_known = WithConfig("qwen3_moe", {{name, value}}).ok() ||
                          WithConfig("gpt_oss", {{name, value}}).ok() ||
                          WithConfig("gemma2", {{name, value}}).ok();
    EXPECT_TRUE(is_known) << name;
  }
}

TEST(ModelShapesTest, NumbersThatDoNotFitAreRefused) {
  const auto error = [](const std::string& model, const std::string& name,
                        const std::string& value) {
    return std::string(WithConfig(model, {{name, value}}).status().message());
  };
  EXPECT_EQ(error("qwen3", "sliding_window", "64"),
            "config: sliding_window of qwen3 cannot be changed: it has no such number");
  EXPECT_EQ(error("qwen3", "attn_logit_softcapping", "50"),
            "config: attn_logit_softcapping of qwen3 cannot be changed: it has no such number");
  EXPECT_EQ(error("qwen3", "num_key_value_heads", "3"),
            "config: num_key_value_heads of qwen3 is 3, which does not divide 16 attention heads");
  EXPECT_EQ(error("qwen3", "num_key_value_heads", "0.5"),
            "config: num_key_value_heads of qwen3 is a whole number from 1 to 65536");
  EXPECT_EQ(error("qwen3", "rope_theta", "-1"), "config: rope_theta of qwen3 is a positive number");
  EXPECT_EQ(error("qwen3_moe", "num_experts_per_tok", "65"),
            "config: num_experts_per_tok of qwen3_moe is at most 64");
}

TEST(ModelShapesTest, Mxfp4IsForWholeBlocksOfGptOssOnly) {
  Probe probe;
  probe.checkpoint = "mxfp4";
  EXPECT_EQ(std::string(ShapeOf(probe).status().message()),
            "checkpoint: only gpt_oss is published in mxfp4, not qwen3");
  probe.model = "gpt_oss";
  EXPECT_TRUE(ShapeOf(probe).ok());
  probe.config = {{"intermediate_size", "300"}};
  EXPECT_EQ(std::string(ShapeOf(probe).status().message()),
            "config: intermediate_size of gpt_oss is 300, but mxfp4 packs 32 values");
}

}  // namespace
}  // namespace bkm
