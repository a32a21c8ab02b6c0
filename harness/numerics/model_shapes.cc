// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/model_shapes.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "harness/base/did_you_mean.h"

namespace bkm {
namespace {

// A new model of a known kind of block is one more row.
const std::vector<ModelShape>& Table() {
  static const auto& table = *new std::vector<ModelShape>{
      {.family = "qwen3",
       .architecture = "Qwen3ForCausalLM",
       .hidden = 256,
       .layers = 8,
       .vocabulary = 2048,
       .heads = 16,
       .kv_heads = 8,
       .head_dim = 128,
       .feed_forward = 3072,
       .tied = true,
       .qk_norm = true,
       .rope_theta = 1e6,
       .norm_epsilon = 1e-6},
  };
  return table;
}

// A projection keeps the scale of its input: 1 / sqrt(fan-in), which is 0.0625 for inputs of the
// hidden size and about 0.02 for the wide inputs of o_proj and down_proj. So attention and
// feed-forward both move every log-prob, and a fault in either shows.
WeightShape Projection(std::string name, int64_t out, int64_t in) {
  return {std::move(name), {out, in}, 0.0, 1.0 / std::sqrt(static_cast<double>(in))};
}

// Not all ones: a skipped or swapped norm weight must show.
WeightShape Norm(std::string name, int64_t size) { return {std::move(name), {size}, 1.0, 0.1}; }

void AddLayer(const ModelShape& m, int64_t layer, std::vector<WeightShape>& weights) {
  const std::string p = absl::StrCat("model.layers.", layer, ".");
  weights.push_back(Norm(p + "input_layernorm.weight", m.hidden));
  weights.push_back(Projection(p + "self_attn.q_proj.weight", m.heads * m.head_dim, m.hidden));
  weights.push_back(Projection(p + "self_attn.k_proj.weight", m.kv_heads * m.head_dim, m.hidden));
  weights.push_back(Projection(p + "self_attn.v_proj.weight", m.kv_heads * m.head_dim, m.hidden));
  if (m.qk_norm) {
    weights.push_back(Norm(p + "self_attn.q_norm.weight", m.head_dim));
    weights.push_back(Norm(p + "self_attn.k_norm.weight", m.head_dim));
  }
  weights.push_back(Projection(p + "self_attn.o_proj.weight", m.hidden, m.heads * m.head_dim));
  weights.push_back(Norm(p + "post_attention_layernorm.weight", m.hidden));
  weights.push_back(Projection(p + "mlp.gate_proj.weight", m.feed_forward, m.hidden));
  weights.push_back(Projection(p + "mlp.up_proj.weight", m.feed_forward, m.hidden));
  weights.push_back(Projection(p + "mlp.down_proj.weight", m.hidden, m.feed_forward));
}

}  // namespace

int64_t WeightShape::numel() const {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

absl::StatusOr<ModelShape> FindModelShape(absl::string_view family) {
  std::vector<std::string> known;
  for (const ModelShape& shape : Table()) {
    if (shape.family == family) return shape;
    known.push_back(shape.family);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown model '", family, "'", DidYouMean(family, known)));
}

std::vector<WeightShape> WeightsOf(const ModelShape& shape) {
  std::vector<WeightShape> weights;
  weights.push_back(Projection("model.embed_tokens.weight", shape.vocabulary, shape.hidden));
  for (int64_t layer = 0; layer < shape.layers; ++layer) AddLayer(shape, layer, weights);
  weights.push_back(Norm("model.norm.weight", shape.hidden));
  if (!shape.tied) {
    weights.push_back(Projection("lm_head.weight", shape.vocabulary, shape.hidden));
  }
  return weights;
}

OrderedJson HfConfig(const ModelShape& shape) {
  return {
      {"architectures", {shape.architecture}},
      {"model_type", shape.family},
      {"attention_bias", false},
      {"attention_dropout", 0.0},
      {"bos_token_id", 1},
      {"eos_token_id", kEosToken},
      {"head_dim", shape.head_dim},
      {"hidden_act", "silu"},
      {"hidden_size", shape.hidden},
      {"initializer_range", 0.02},
      {"intermediate_size", shape.feed_forward},
      {"max_position_embeddings", kMaxPositions},
      {"max_window_layers", shape.layers},
      {"num_attention_heads", shape.heads},
      {"num_hidden_layers", shape.layers},
      {"num_key_value_heads", shape.kv_heads},
      {"rms_norm_eps", shape.norm_epsilon},
      // transformers 4 reads the first two and silently misreads the third alone; 5 reads the
      // third.
      {"rope_theta", shape.rope_theta},
      {"rope_scaling", nullptr},
      {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", shape.rope_theta}}},
      {"sliding_window", nullptr},
      {"tie_word_embeddings", shape.tied},
      {"torch_dtype", "float32"},  // the same, before and after the rename
      {"dtype", "float32"},
      {"use_cache", false},
      {"use_sliding_window", false},
      {"vocab_size", shape.vocabulary},
  };
}

}  // namespace bkm
