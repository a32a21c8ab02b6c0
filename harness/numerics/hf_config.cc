// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/hf_config.h"

#include "absl/strings/str_replace.h"

namespace bkm {
namespace {

// The fields of `rope_scaling` besides the type; empty for plain rotary embedding.
OrderedJson RopeScaling(const ModelShape& shape) {
  const RopeShape& rope = shape.rope;
  OrderedJson scaling;
  if (rope.scaling == "default") return scaling;
  scaling = {{"rope_type", rope.scaling},
             {"factor", rope.factor},
             {"original_max_position_embeddings", rope.original_positions}};
  if (rope.scaling == "llama3") {
    scaling["low_freq_factor"] = rope.low_frequency_factor;
    scaling["high_freq_factor"] = rope.high_frequency_factor;
  } else {
    scaling["beta_fast"] = rope.beta_fast;
    scaling["beta_slow"] = rope.beta_slow;
    scaling["truncate"] = rope.truncated;
    // By default, HF applies the factor of mscale 1 to the sines and cosines, which is the same
    // where all of a head rotates. If both fields are given and equal, DeepseekV3Attention scales
    // the softmax instead.
    if (shape.latent.rank > 0) {
      scaling["mscale"] = rope.mscale;
      scaling["mscale_all_dim"] = rope.mscale;
    }
  }
  return scaling;
}

// transformers 4 reads the first two keys and silently misreads the third alone; 5 reads the third.
void AddRope(const ModelShape& shape, const std::string& keys, OrderedJson& config) {
  const RopeShape& rope = shape.rope;
  OrderedJson scaling = RopeScaling(shape);
  if (keys != "rope_parameters") {
    config["rope_theta"] = rope.theta;
    config["rope_scaling"] = scaling;
  }
  if (keys == "rope_theta") return;
  if (scaling.is_null()) scaling["rope_type"] = rope.scaling;
  scaling["rope_theta"] = rope.theta;
  config["rope_parameters"] = scaling;
}

void AddLlama3(OrderedJson& config) {
  config["mlp_bias"] = false;
  config["pretraining_tp"] = 1;
}

void AddQwen3(const ModelShape& shape, OrderedJson& config) {
  config["max_window_layers"] = shape.layers;
  config["sliding_window"] = nullptr;
  config["use_sliding_window"] = false;
}

void AddQwen3Moe(const ModelShape& shape, OrderedJson& config) {
  AddQwen3(shape, config);
  config["decoder_sparse_step"] = 1;
  config["mlp_only_layers"] = OrderedJson::array();
  config["moe_intermediate_size"] = shape.experts.hidden;
  config["norm_topk_prob"] = shape.experts.normalised;
  config["num_experts"] = shape.experts.count;
  config["num_experts_per_tok"] = shape.experts.active;
  config["output_router_logits"] = false;
  config["router_aux_loss_coef"] = 0.001;
}

OrderedJson LayerTypes(const ModelShape& shape) {
  OrderedJson types = OrderedJson::array();
  for (int64_t layer = 0; layer < shape.layers; ++layer)
    types.push_back(shape.WindowOf(layer) > 0 ? "sliding_attention" : "full_attention");
  return types;
}

void AddGptOss(const ModelShape& shape, OrderedJson& config) {
  config["intermediate_size"] = shape.experts.hidden;
  config["layer_types"] = LayerTypes(shape);
  config["num_experts_per_tok"] = shape.experts.active;
  config["experts_per_token"] = shape.experts.active;
  config["initial_context_length"] = shape.rope.original_positions;
  config["num_local_experts"] = shape.experts.count;
  config["output_router_logits"] = false;
  config["pad_token_id"] = kPadToken;
  config["router_aux_loss_coef"] = 0.9;
  config["sliding_window"] = shape.window;
  config["swiglu_limit"] = shape.experts.limit;
}

void AddDeepseekV3(const ModelShape& shape, OrderedJson& config) {
  config["aux_loss_alpha"] = 0.001;
  config["ep_size"] = 1;
  config["first_k_dense_replace"] = shape.experts.first_layer;
  config["head_dim"] = shape.latent.rope_dim;  // as transformers derives it
  config["kv_lora_rank"] = shape.latent.rank;
  config["moe_intermediate_size"] = shape.experts.hidden;
  config["moe_layer_freq"] = 1;
  config["n_group"] = shape.experts.groups;
  config["n_routed_experts"] = shape.experts.count;
  config["n_shared_experts"] = shape.experts.shared;
  config["norm_topk_prob"] = shape.experts.normalised;
  config["num_experts_per_tok"] = shape.experts.active;
  config["pretraining_tp"] = 1;
  config["q_lora_rank"] = nullptr;
  if (shape.latent.query_rank > 0) config["q_lora_rank"] = shape.latent.query_rank;
  config["qk_nope_head_dim"] = shape.latent.plain_dim;
  config["qk_rope_head_dim"] = shape.latent.rope_dim;
  config["rope_interleave"] = shape.rope.neighbours;
  config["routed_scaling_factor"] = shape.experts.scale;
  config["seq_aux"] = true;
  // transformers' own class does not read it.
  config["scoring_func"] = shape.experts.sigmoid ? "sigmoid" : "softmax";
  config["topk_group"] = shape.experts.active_groups;
  config["topk_method"] = "noaux_tc";
  config["v_head_dim"] = shape.latent.value_dim;
}

void AddGemma2(const ModelShape& shape, OrderedJson& config) {
  config["attn_logit_softcapping"] = shape.attention_softcap;
  config["final_logit_softcapping"] = shape.logit_softcap;
  config["hidden_act"] = "gelu_pytorch_tanh";
  config["hidden_activation"] = "gelu_pytorch_tanh";
  config["layer_types"] = LayerTypes(shape);
  config["pad_token_id"] = kPadToken;
  config["query_pre_attn_scalar"] = shape.query_scalar;
  config["sliding_window"] = shape.window;
}

// Read by transformers' ...ForTokenClassification, whose default dropout is 0.1.
void AddValueHead(const ModelShape& shape, OrderedJson& config) {
  config["architectures"] = {
      absl::StrReplaceAll(shape.architecture, {{"ForCausalLM", "ForTokenClassification"}})};
  config["classifier_dropout"] = 0.0;
  config["id2label"] = {{"0", "value"}};
  config["label2id"] = {{"value", 0}};
}

}  // namespace

OrderedJson HfConfig(const ModelShape& shape, const std::string& rope_keys,
                     const std::string& type) {
  OrderedJson config = {
      {"architectures", {shape.architecture}},
      {"model_type", shape.hf_type},
      {"attention_bias", shape.projections_biased},
      {"attention_dropout", 0.0},
      {"bos_token_id", 1},
      {"eos_token_id", kEosToken},
      {"head_dim", shape.head_dim},
      {"hidden_act", "silu"},
      {"hidden_size", shape.hidden},
      {"initializer_range", 0.02},
      {"intermediate_size", shape.feed_forward},
      {"max_position_embeddings", shape.positions},
      {"num_attention_heads", shape.heads},
      {"num_hidden_layers", shape.layers},
      {"num_key_value_heads", shape.kv_heads},
      {"rms_norm_eps", shape.norm_epsilon},
      {"tie_word_embeddings", shape.tied},
      {"torch_dtype", type},  // the same, before and after the rename
      {"dtype", type},
      {"use_cache", shape.use_cache},
      {"vocab_size", shape.vocabulary},
  };
  if (shape.value_head) AddValueHead(shape, config);
  AddRope(shape, rope_keys, config);
  if (shape.hf_type == "llama") AddLlama3(config);
  if (shape.hf_type == "qwen3") AddQwen3(shape, config);
  if (shape.hf_type == "qwen3_moe") AddQwen3Moe(shape, config);
  if (shape.hf_type == "gpt_oss") AddGptOss(shape, config);
  if (shape.hf_type == "gemma2") AddGemma2(shape, config);
  if (shape.hf_type == "deepseek_v3") AddDeepseekV3(shape, config);
  return config;
}

}  // namespace bkm
