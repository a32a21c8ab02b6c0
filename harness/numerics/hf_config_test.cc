// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "harness/numerics/model_shapes.h"

namespace bkm {
namespace {

// A published configuration: what its keys say that does not depend on the model's size.
struct Published {
  std::string source;
  OrderedJson values;
  std::vector<std::string> others;  // keys whose values do
};

const std::map<std::string, Published>& AllPublished() {
  static const auto& all = *new std::map<std::string, Published>{
      {"qwen3",
       {"Qwen/Qwen3-0.6B",
        {{"architectures", {"Qwen3ForCausalLM"}},
         {"attention_bias", false},
         {"attention_dropout", 0.0},
         {"hidden_act", "silu"},
         {"initializer_range", 0.02},
         {"model_type", "qwen3"},
         {"rms_norm_eps", 1e-6},
         {"rope_scaling", nullptr},
         {"sliding_window", nullptr},
         {"tie_word_embeddings", true},
         {"use_cache", true},
         {"use_sliding_window", false}},
        {"bos_token_id", "eos_token_id", "head_dim", "hidden_size", "intermediate_size",
         "max_position_embeddings", "max_window_layers", "num_attention_heads", "num_hidden_layers",
         "num_key_value_heads", "rope_theta", "torch_dtype", "vocab_size"}}},
      {"llama3",
       {"meta-llama/Llama-3.2-1B",
        {{"architectures", {"LlamaForCausalLM"}},
         {"attention_bias", false},
         {"attention_dropout", 0.0},
         {"hidden_act", "silu"},
         {"initializer_range", 0.02},
         {"mlp_bias", false},
         {"model_type", "llama"},
         {"pretraining_tp", 1},
         {"rms_norm_eps", 1e-5},
         {"use_cache", true}},
        {"bos_token_id", "eos_token_id", "head_dim", "hidden_size", "intermediate_size",
         "max_position_embeddings", "num_attention_heads", "num_hidden_layers",
         "num_key_value_heads", "rope_scaling", "rope_theta", "tie_word_embeddings", "torch_dtype",
         "vocab_size"}}},
      {"qwen3_moe",
       {"Qwen/Qwen3-30B-A3B",
        {{"architectures", {"Qwen3MoeForCausalLM"}},
         {"attention_bias", false},
         {"attention_dropout", 0.0},
         {"decoder_sparse_step", 1},
         {"hidden_act", "silu"},
         {"initializer_range", 0.02},
         {"mlp_only_layers", OrderedJson::array()},
         {"model_type", "qwen3_moe"},
         {"norm_topk_prob", true},
         {"output_router_logits", false},
         {"rms_norm_eps", 1e-6},
         {"rope_scaling", nullptr},
         {"router_aux_loss_coef", 0.001},
         {"sliding_window", nullptr},
         {"tie_word_embeddings", false},
         {"use_cache", true},
         {"use_sliding_window", false}},
        {"bos_token_id", "eos_token_id", "head_dim", "hidden_size", "intermediate_size",
         "max_position_embeddings", "max_window_layers", "moe_intermediate_size",
         "num_attention_heads", "num_experts", "num_experts_per_tok", "num_hidden_layers",
         "num_key_value_heads", "rope_theta", "torch_dtype", "vocab_size"}}},
      {"gpt_oss",
       {"openai/gpt-oss-20b",
        {{"architectures", {"GptOssForCausalLM"}},
         {"attention_bias", true},
         {"attention_dropout", 0.0},
         {"hidden_act", "silu"},
         {"initial_context_length", 4096},
         {"initializer_range", 0.02},
         {"model_type", "gpt_oss"},
         {"output_router_logits", false},
         {"rms_norm_eps", 1e-5},
         {"router_aux_loss_coef", 0.9},
         {"swiglu_limit", 7.0},
         {"tie_word_embeddings", false},
         {"use_cache", true}},
        {"eos_token_id", "experts_per_token", "head_dim", "hidden_size", "intermediate_size",
         "layer_types", "max_position_embeddings", "num_attention_heads", "num_experts_per_tok",
         "num_hidden_layers", "num_key_value_heads", "num_local_experts", "pad_token_id",
         "rope_scaling", "rope_theta", "sliding_window", "vocab_size"}}},
      {"gemma2",
       {"google/gemma-2-2b",
        {{"architectures", {"Gemma2ForCausalLM"}},
         {"attention_bias", false},
         {"attention_dropout", 0.0},
         {"hidden_act", "gelu_pytorch_tanh"},
         {"hidden_activation", "gelu_pytorch_tanh"},
         {"initializer_range", 0.02},
         {"max_position_embeddings", 8192},
         {"model_type", "gemma2"},
         {"pad_token_id", 0},
         {"rms_norm_eps", 1e-6},
         {"rope_theta", 10000.0},
         {"use_cache", true}},
        {"attn_logit_softcapping", "bos_token_id", "eos_token_id", "final_logit_softcapping",
         "head_dim", "hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers",
         "num_key_value_heads", "query_pre_attn_scalar", "sliding_window", "torch_dtype",
         "vocab_size"}}},
      {"deepseek_v3_published",
       {"deepseek-ai/DeepSeek-V3",
        {{"architectures", {"DeepseekV3ForCausalLM"}},
         {"attention_bias", false},
         {"attention_dropout", 0.0},
         {"aux_loss_alpha", 0.001},
         {"ep_size", 1},
         {"hidden_act", "silu"},
         {"initializer_range", 0.02},
         {"model_type", "deepseek_v3"},
         {"moe_layer_freq", 1},
         {"norm_topk_prob", true},
         {"pretraining_tp", 1},
         {"rms_norm_eps", 1e-6},
         {"rope_theta", 10000.0},
         {"routed_scaling_factor", 2.5},
         {"scoring_func", "sigmoid"},
         {"seq_aux", true},
         {"tie_word_embeddings", false},
         {"topk_method", "noaux_tc"},
         {"use_cache", true}},
        {"bos_token_id",
         "eos_token_id",
         "first_k_dense_replace",
         "hidden_size",
         "intermediate_size",
         "kv_lora_rank",
         "max_position_embeddings",
         "moe_intermediate_size",
         "n_group",
         "n_routed_experts",
         "n_shared_experts",
         "num_attention_heads",
         "num_experts_per_tok",
         "num_hidden_layers",
         "num_key_value_heads",
         "q_lora_rank",
         "qk_nope_head_dim",
         "qk_rope_head_dim",
         "rope_scaling",
         "topk_group",
         "torch_dtype",
         "v_head_dim",
         "vocab_size"}}}};
  return all;
}

TEST(HfConfigTest, SaysWhatPublishedConfigurationsOfTheFamilySay) {
  for (const auto& [family, published] : AllPublished()) {
    const OrderedJson config = HfConfig(*FindModelShape(family), "both", "float32");
    for (const auto& [key, value] : published.values.items()) {
      ASSERT_TRUE(config.contains(key)) << published.source << " has " << key;
      EXPECT_EQ(config[key], value) << key << " of " << published.source;
    }
    for (const std::string& key : published.others)
      EXPECT_TRUE(config.contains(key)) << published.source << " has " << key;
  }
}

// What is in our files and in no published one of the family, and why.
TEST(HfConfigTest, WhatNoPublishedConfigurationHasHasAReason) {
  const std::map<std::string, std::string> reasons = {
      {"dtype", "transformers 5 writes it for torch_dtype"},
      {"rope_parameters", "transformers 5 writes it for the two other rope keys"},
      {"head_dim", "transformers derives it for deepseek_v3"},
      {"layer_types", "transformers 5 writes it for gemma2, and older ones do not read it"},
      {"rope_scaling", "gemma2 has none: the same as null"},
      {"tie_word_embeddings", "gemma2's file leaves its default, true"},
      {"rope_interleave", "the default of transformers' class, read by nobody else"},
      {"bos_token_id", "gpt_oss has none: it is the tokenizer's, and begins no document here"},
      {"torch_dtype", "gpt_oss's file says it by its quantization"}};
  for (const auto& [family, published] : AllPublished()) {
    const OrderedJson config = HfConfig(*FindModelShape(family), "both", "float32");
    for (const auto& [key, value] : config.items()) {
      const bool is_published = published.values.contains(key) ||
                                std::find(published.others.begin(), published.others.end(), key) !=
                                    published.others.end();
      EXPECT_TRUE(is_published || reasons.contains(key)) << family << ": " << key;
    }
  }
}

TEST(HfConfigTest, AProbeMayAskForNoCache) {
  ModelShape shape = *FindModelShape("qwen3");
  EXPECT_EQ(HfConfig(shape, "both", "float32")["use_cache"], true);
  shape.use_cache = false;
  EXPECT_EQ(HfConfig(shape, "both", "float32")["use_cache"], false);
}

}  // namespace
}  // namespace bkm
