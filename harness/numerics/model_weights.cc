// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/model_weights.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace bkm {
namespace {

// Fewer places for the tensors of single experts, because there are hundreds of them.
constexpr int64_t kPlacesOfExpert = 32;

// A projection keeps the scale of its input: 1 / sqrt(fan-in) is 0.0625 for inputs of the hidden
// size and about 0.02 for the wide inputs of o_proj and down_proj. So attention and feed-forward
// both move every log-prob, and a fault in either shows.
WeightShape Projection(std::string name, int64_t out, int64_t in) {
  return {std::move(name), {out, in}, 0.0, 1.0 / std::sqrt(static_cast<double>(in))};
}

// Not all ones, so that a skipped or swapped norm weight shows.
WeightShape Norm(std::string name, int64_t size, const ModelShape& m) {
  return {std::move(name), {size}, 1.0 - m.norm_offset, 0.1};
}

WeightShape Bias(std::string name, std::vector<int64_t> shape) {
  return {std::move(name), std::move(shape), 0.0, 0.1};
}

// Scores of experts differ by about two, so the last of a token's experts has a small weight. A
// right low-precision run may choose another last expert and still stay close.
WeightShape Router(std::string name, const ModelShape& m) {
  WeightShape router = Projection(std::move(name), m.experts.count, m.hidden);
  router.standard_deviation *= 2;
  return router;
}

class WeightList {
 public:
  explicit WeightList(const ModelShape& shape) : m_(shape) {}

  void AddLayer(int64_t layer) {
    const std::string p = absl::StrCat("model.layers.", layer, ".");
    AddNorm(p + "input_layernorm", m_.hidden);
    if (m_.latent.rank > 0) {
      AddLatentAttention(p + "self_attn.");
    } else {
      AddAttention(p + "self_attn.");
    }
    AddNorm(p + "post_attention_layernorm", m_.hidden);
    if (m_.norm_outputs) {
      AddNorm(p + "pre_feedforward_layernorm", m_.hidden);
      AddNorm(p + "post_feedforward_layernorm", m_.hidden);
    }
    if (!m_.HasExperts(layer)) {
      AddFeedForward(p + "mlp.", m_.feed_forward);
    } else if (m_.experts.limit > 0) {
      AddClampedExperts(p + "mlp.");
    } else {
      AddExperts(p + "mlp.");
    }
  }

  void Add(WeightShape weight) { weights_.push_back(std::move(weight)); }
  void AddNorm(const std::string& p, int64_t size) { Add(Norm(p + ".weight", size, m_)); }

  std::vector<WeightShape> Take() { return std::move(weights_); }

 private:
  void AddProjection(const std::string& p, int64_t out, int64_t in) {
    Add(Projection(p + ".weight", out, in));
    if (m_.projections_biased) Add(Bias(p + ".bias", {out}));
  }

  void AddAttention(const std::string& p) {
    AddProjection(p + "q_proj", m_.heads * m_.head_dim, m_.hidden);
    AddProjection(p + "k_proj", m_.kv_heads * m_.head_dim, m_.hidden);
    AddProjection(p + "v_proj", m_.kv_heads * m_.head_dim, m_.hidden);
    if (m_.qk_norm) {
      AddNorm(p + "q_norm", m_.head_dim);
      AddNorm(p + "k_norm", m_.head_dim);
    }
    // Gives the sink about a tenth of the softmax in a document of a hundred tokens.
    if (m_.sinks) Add({p + "sinks", {m_.heads}, 3.0, 1.0});
    AddProjection(p + "o_proj", m_.hidden, m_.heads * m_.head_dim);
  }

  void AddLatentAttention(const std::string& p) {
    const LatentShape& latent = m_.latent;
    if (latent.query_rank > 0) {
      Add(Projection(p + "q_a_proj.weight", latent.query_rank, m_.hidden));
      AddNorm(p + "q_a_layernorm", latent.query_rank);
      Add(Projection(p + "q_b_proj.weight", m_.heads * m_.head_dim, latent.query_rank));
    } else {
      Add(Projection(p + "q_proj.weight", m_.heads * m_.head_dim, m_.hidden));
    }
    Add(Projection(p + "kv_a_proj_with_mqa.weight", latent.rank + latent.rope_dim, m_.hidden));
    AddNorm(p + "kv_a_layernorm", latent.rank);
    Add(Projection(p + "kv_b_proj.weight", m_.heads * (latent.plain_dim + latent.value_dim),
                   latent.rank));
    Add(Projection(p + "o_proj.weight", m_.hidden, m_.heads * latent.value_dim));
  }

  void AddFeedForward(const std::string& p, int64_t size, int64_t places = 256) {
    for (WeightShape weight : {Projection(p + "gate_proj.weight", size, m_.hidden),
                               Projection(p + "up_proj.weight", size, m_.hidden),
                               Projection(p + "down_proj.weight", m_.hidden, size)}) {
      weight.places = places;
      Add(std::move(weight));
    }
  }

  void AddExperts(const std::string& p) {
    Add(Router(p + "gate.weight", m_));
    for (int64_t expert = 0; expert < m_.experts.count; ++expert) {
      AddFeedForward(absl::StrCat(p, "experts.", expert, "."), m_.experts.hidden, kPlacesOfExpert);
      // Sigmoids of a token's experts are much the same, so the last one has a large weight: there,
      // the experts themselves must be small for a right run to stay close.
      if (m_.experts.sigmoid) weights_.back().standard_deviation *= 0.2;
    }
    if (m_.experts.shared > 0) {
      AddFeedForward(p + "shared_experts.", m_.experts.shared * m_.experts.hidden);
    }
  }

  // All experts in one tensor [experts, in, out] with alternating gate and up columns. gate_up_proj
  // is three times as wide as other projections so that some elements reach the clamp, and
  // down_proj is narrower.
  void AddClampedExperts(const std::string& p) {
    const auto [count, in, out] = std::tuple(m_.experts.count, m_.hidden, m_.experts.hidden);
    Add(Router(p + "router.weight", m_));
    Add(Bias(p + "router.bias", {count}));
    Add({p + "experts.gate_up_proj", {count, in, 2 * out}, 0.0, 3.0 / std::sqrt(in)});
    Add(Bias(p + "experts.gate_up_proj_bias", {count, 2 * out}));
    Add({p + "experts.down_proj", {count, out, in}, 0.0, 0.2 / std::sqrt(out)});
    Add(Bias(p + "experts.down_proj_bias", {count, in}));
  }

  const ModelShape& m_;
  std::vector<WeightShape> weights_;
};

}  // namespace

int64_t WeightShape::numel() const {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

std::vector<WeightShape> WeightsOf(const ModelShape& shape) {
  WeightList weights(shape);
  weights.Add(Projection("model.embed_tokens.weight", shape.vocabulary, shape.hidden));
  for (int64_t layer = 0; layer < shape.layers; ++layer) weights.AddLayer(layer);
  weights.AddNorm("model.norm", shape.hidden);
  if (shape.value_head) {  // as transformers' ...ForTokenClassification calls it
    weights.Add(Projection("score.weight", 1, shape.hidden));
    weights.Add(Bias("score.bias", {1}));
    return weights.Take();
  }
  if (!shape.tied) weights.Add(Projection("lm_head.weight", shape.vocabulary, shape.hidden));
  return weights.Take();
}

std::vector<WeightShape> BuffersOf(const ModelShape& shape) {
  std::vector<WeightShape> buffers;
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    // Added to the scores when experts are chosen: it changes the choice of some tokens.
    if (shape.hf_type == "deepseek_v3" && shape.HasExperts(layer)) {
      buffers.push_back({absl::StrCat("model.layers.", layer, ".mlp.gate.e_score_correction_bias"),
                         {shape.experts.count},
                         0.0,
                         0.05});
    }
  }
  return buffers;
}

std::vector<WeightShape> TensorsOf(const ModelShape& shape) {
  std::vector<WeightShape> tensors = WeightsOf(shape);
  for (WeightShape& buffer : BuffersOf(shape)) tensors.push_back(std::move(buffer));
  return tensors;
}

std::vector<TransposedCopy> TransposedCopiesOf(const ModelShape& shape) {
  std::vector<TransposedCopy> copies;
  if (shape.hf_type != "gpt_oss") return copies;
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    for (const char* matrix : {"gate_up_proj", "down_proj"}) {
      const std::string name = absl::StrCat("model.layers.", layer, ".mlp.experts.", matrix);
      copies.push_back({name + "_blocks", name});
    }
  }
  return copies;
}

}  // namespace bkm
