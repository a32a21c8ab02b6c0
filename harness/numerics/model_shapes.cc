// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/model_shapes.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "harness/base/did_you_mean.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"
#include "harness/numerics/mxfp4.h"

namespace bkm {
namespace {

ModelShape Qwen3() {
  return {.family = "qwen3",
          .hf_type = "qwen3",
          .architecture = "Qwen3ForCausalLM",
          .hidden = 256,
          .layers = 8,
          .vocabulary = 2048,
          .heads = 16,
          .kv_heads = 8,
          .head_dim = 128,
          .feed_forward = 3072,
          .positions = 4096,
          .tied = true,
          .qk_norm = true,
          .norm_epsilon = 1e-6,
          .rope = {.theta = 1e6}};
}

// This flavor has no grouped queries: it has as many key heads as query heads.
ModelShape Llama3() {
  return {.family = "llama3",
          .hf_type = "llama",
          .architecture = "LlamaForCausalLM",
          .hidden = 256,
          .layers = 6,
          .vocabulary = 2048,
          .heads = 16,
          .kv_heads = 16,
          .head_dim = 16,
          .feed_forward = 768,
          .positions = 131072,
          .norm_epsilon = 1e-5,
          .rope = {.theta = 5e5,
                   .scaling = "llama3",
                   .factor = 8,
                   .original_positions = 8192,
                   .low_frequency_factor = 1,
                   .high_frequency_factor = 4}};
}

ModelShape GptOss() {
  return {.family = "gpt_oss",
          .hf_type = "gpt_oss",
          .architecture = "GptOssForCausalLM",
          .hidden = 256,
          .layers = 4,
          .vocabulary = 2048,
          .heads = 64,
          .kv_heads = 8,
          .head_dim = 64,
          .feed_forward = 0,
          .positions = 131072,
          .projections_biased = true,
          .sinks = true,
          .window = 128,
          .norm_epsilon = 1e-5,
          .rope = {.theta = 150000,
                   .scaling = "yarn",
                   .factor = 32,
                   .original_positions = 4096,
                   .beta_fast = 32,
                   .beta_slow = 1,
                   .truncated = false,
                   .mscale = 1},
          .experts = {.count = 8, .active = 4, .hidden = 2880, .normalised = true, .limit = 7}};
}

// The flavor `debugmodel_moe`, cut from eight equal layers to two. With 64 experts a layer, eight
// layers would hold 1.2 GB of weights and take most of a run's time and memory. verl loses nothing
// by the cut: it finds flavors by (hidden, layers, vocabulary), and (256, 8, 2048) is the dense
// `debugmodel`.
ModelShape Qwen3Moe() {
  ModelShape shape = Qwen3();
  shape.family = "qwen3_moe";
  shape.hf_type = "qwen3_moe";
  shape.architecture = "Qwen3MoeForCausalLM";
  shape.layers = 2;
  shape.tied = false;
  shape.experts = {.count = 64, .active = 8, .hidden = 768, .normalised = true};
  return shape;
}

// torchtitan's flavor. It differs from DeepseekV3ForCausalLM in ways that config.json cannot
// express: experts are scored by softmax, and the norm of the latent vector has the epsilon of the
// others. Engines of torchtitan build the flavor whatever config.json says.
ModelShape DeepseekV3() {
  return {
      .family = "deepseek_v3",
      .hf_type = "deepseek_v3",
      .architecture = "DeepseekV3ForCausalLM",
      .hidden = 256,
      .layers = 6,
      .vocabulary = 2048,
      .heads = 16,
      .kv_heads = 16,
      .head_dim = 192,
      .feed_forward = 1024,
      .positions = 163840,
      .norm_epsilon = 1e-5,
      .rope = {.theta = 1e4,
               .scaling = "yarn",
               .factor = 40,
               .original_positions = 4096,
               .beta_fast = 32,
               .beta_slow = 1,
               .mscale = 0.7,
               .neighbours = true},
      .experts = {.count = 8, .active = 3, .hidden = 256, .shared = 2, .first_layer = 1},
      .latent = {
          .rank = 512, .plain_dim = 128, .rope_dim = 64, .value_dim = 128, .norm_epsilon = 1e-5}};
}

// The model as DeepSeek published it and transformers builds it (config.json of
// deepseek-ai/DeepSeek-V3), smaller: 16 experts in 4 groups instead of 256 in 8. The norms of its
// latent vectors have the epsilon of DeepseekV3RMSNorm, which the configuration does not change.
ModelShape DeepseekV3Published() {
  ModelShape shape = DeepseekV3();
  shape.family = "deepseek_v3_published";
  shape.layers = 3;
  shape.norm_epsilon = 1e-6;
  shape.rope.mscale = 1;
  shape.experts = {.count = 16,
                   .active = 4,
                   .hidden = 256,
                   .shared = 1,
                   .first_layer = 1,
                   .normalised = true,
                   .sigmoid = true,
                   .groups = 4,
                   .active_groups = 2,
                   .scale = 2.5};
  shape.latent.query_rank = 384;
  shape.latent.norm_epsilon = 1e-6;
  return shape;
}

// Smaller than any published one, and with numbers of its own where a fault must show: caps of the
// size of the logits, a scale that is not that of head_dim, and a window that most documents
// exceed. sqrt(hidden) is 16, which bf16 holds exactly.
ModelShape Gemma2() {
  return {.family = "gemma2",
          .hf_type = "gemma2",
          .architecture = "Gemma2ForCausalLM",
          .hidden = 256,
          .layers = 4,
          .vocabulary = 2048,
          .heads = 8,
          .kv_heads = 4,
          .head_dim = 64,
          .feed_forward = 1024,
          .positions = 8192,
          .tied = true,
          .window = 32,
          .query_scalar = 24,
          .attention_softcap = 2.5,
          .logit_softcap = 4,
          .embedding_scaled = true,
          .gelu = true,
          .norm_outputs = true,
          .norm_offset = 1,
          .norm_epsilon = 1e-6,
          .rope = {.theta = 1e4}};
}

// Where a shape keeps a number of config.json; null for a number that the family does not have.
template <typename Value>
struct ConfigNumber {
  const char* name;
  Value* (*place)(ModelShape&);
};
using RealNumber = ConfigNumber<double>;
using WholeNumber = ConfigNumber<int64_t>;

constexpr RealNumber kRealNumbers[] = {
    {"attn_logit_softcapping",
     [](ModelShape& m) { return m.attention_softcap > 0 ? &m.attention_softcap : nullptr; }},
    {"final_logit_softcapping",
     [](ModelShape& m) { return m.logit_softcap > 0 ? &m.logit_softcap : nullptr; }},
    {"rms_norm_eps", [](ModelShape& m) { return &m.norm_epsilon; }},
    {"rope_theta", [](ModelShape& m) { return &m.rope.theta; }},
};

constexpr WholeNumber kWholeNumbers[] = {
    {"head_dim", [](ModelShape& m) { return m.latent.rank > 0 ? nullptr : &m.head_dim; }},
    {"hidden_size", [](ModelShape& m) { return &m.hidden; }},
    {"intermediate_size",
     [](ModelShape& m) { return m.hf_type == "gpt_oss" ? &m.experts.hidden : &m.feed_forward; }},
    {"moe_intermediate_size",
     [](ModelShape& m) {
       return m.experts.count > 0 && m.hf_type != "gpt_oss" ? &m.experts.hidden : nullptr;
     }},
    {"num_attention_heads", [](ModelShape& m) { return &m.heads; }},
    {"num_experts_per_tok",
     [](ModelShape& m) { return m.experts.count > 0 ? &m.experts.active : nullptr; }},
    {"num_hidden_layers", [](ModelShape& m) { return &m.layers; }},
    {"num_key_value_heads",
     [](ModelShape& m) { return m.latent.rank > 0 ? nullptr : &m.kv_heads; }},
    {"query_pre_attn_scalar",
     [](ModelShape& m) { return m.query_scalar > 0 ? &m.query_scalar : nullptr; }},
    {"sliding_window", [](ModelShape& m) { return m.window > 0 ? &m.window : nullptr; }},
    {"vocab_size", [](ModelShape& m) { return &m.vocabulary; }},
};

absl::Status Misfit(const ModelShape& shape, const std::string& name, absl::string_view message) {
  return absl::InvalidArgumentError(
      absl::StrCat("config: ", name, " of ", shape.family, " ", message));
}

absl::Status SetNumber(const std::string& name, const Json& value, ModelShape& shape) {
  if (name == "tie_word_embeddings" || name == "use_cache") {
    if (!value.is_boolean()) return Misfit(shape, name, "is a boolean");
    (name == "use_cache" ? shape.use_cache : shape.tied) = value.get<bool>();
    return absl::OkStatus();
  }
  constexpr char kLacking[] = "cannot be changed: it has no such number";
  for (const RealNumber& number : kRealNumbers) {
    if (name != number.name) continue;
    double* place = number.place(shape);
    if (place == nullptr) return Misfit(shape, name, kLacking);
    if (!value.is_number() || value.get<double>() <= 0)
      return Misfit(shape, name, "is a positive number");
    *place = value.get<double>();
    return absl::OkStatus();
  }
  for (const WholeNumber& number : kWholeNumbers) {
    if (name != number.name) continue;
    int64_t* place = number.place(shape);
    if (place == nullptr) return Misfit(shape, name, kLacking);
    constexpr int64_t kMost = 1 << 16;
    if (!value.is_number_integer() || value < 1 || value > kMost)
      return Misfit(shape, name, absl::StrCat("is a whole number from 1 to ", kMost));
    *place = value.get<int64_t>();
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("config: ", name, " is unknown"));
}

absl::Status CheckConfig(const ModelShape& shape) {
  if (shape.latent.rank > 0) return absl::OkStatus();
  if (shape.heads % shape.kv_heads != 0)
    return Misfit(shape, "num_key_value_heads",
                  absl::StrCat("is ", shape.kv_heads, ", which does not divide ", shape.heads,
                               " attention heads"));
  if (shape.head_dim % 2 != 0) return Misfit(shape, "head_dim", "is even");
  if (shape.experts.active > shape.experts.count)
    return Misfit(shape, "num_experts_per_tok", absl::StrCat("is at most ", shape.experts.count));
  return absl::OkStatus();
}

absl::Status CheckMxfp4(const ModelShape& shape) {
  if (shape.hf_type != "gpt_oss")
    return absl::InvalidArgumentError(
        absl::StrCat("checkpoint: only gpt_oss is published in mxfp4, not ", shape.family));
  for (const auto& [name, size] : {std::pair("hidden_size", shape.hidden),
                                   std::pair("intermediate_size", shape.experts.hidden)}) {
    if (size % kMxfp4Block != 0)
      return Misfit(shape, name,
                    absl::StrCat("is ", size, ", but mxfp4 packs ", kMxfp4Block, " values"));
  }
  return absl::OkStatus();
}

std::vector<ModelShape> AllShapes() {
  return {Qwen3(), Llama3(), GptOss(), Qwen3Moe(), DeepseekV3(), DeepseekV3Published(), Gemma2()};
}

}  // namespace

int64_t ModelShape::WindowOf(int64_t layer) const { return layer % 2 == 0 ? window : 0; }

double ModelShape::SoftmaxScale() const {
  return 1 / std::sqrt(static_cast<double>(query_scalar > 0 ? query_scalar : head_dim));
}

bool ModelShape::HasExperts(int64_t layer) const {
  return experts.count > 0 && layer >= experts.first_layer;
}

std::vector<std::string> ModelFamilies() {
  std::vector<std::string> families;
  for (const ModelShape& shape : AllShapes()) families.push_back(shape.family);
  return families;
}

absl::StatusOr<ModelShape> FindModelShape(absl::string_view family) {
  for (const ModelShape& shape : AllShapes()) {
    if (shape.family == family) return shape;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown model '", family, "'", DidYouMean(family, ModelFamilies())));
}

absl::StatusOr<ModelShape> ShapeOf(const Probe& probe) {
  ASSIGN_OR_RETURN(ModelShape shape, FindModelShape(probe.model));
  shape.value_head = probe.head == "value";
  for (const auto& [name, text] : probe.config)
    RETURN_IF_ERROR(SetNumber(name, Json::parse(text, nullptr, false), shape));
  if (!probe.config.empty()) RETURN_IF_ERROR(CheckConfig(shape));
  if (probe.checkpoint == "mxfp4") RETURN_IF_ERROR(CheckMxfp4(shape));
  return shape;
}

}  // namespace bkm
