// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_MODEL_SHAPES_H_
#define HARNESS_NUMERICS_MODEL_SHAPES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/model/probe.h"

namespace bkm {

// Rotary position embedding and its extension to longer texts.
struct RopeShape {
  double theta = 0;
  // HF's rope_type: "default"; "llama3" (long wavelengths are slowed down by `factor`); "yarn"
  // (Peng et al. 2023: so are frequencies that make fewer than beta_slow turns over the original
  // length).
  std::string scaling = "default";
  double factor = 1;
  int64_t original_positions = 0;
  double low_frequency_factor = 0;  // llama3
  double high_frequency_factor = 0;
  double beta_fast = 0;  // yarn
  double beta_slow = 0;
  bool truncated = true;  // yarn's two boundaries are rounded outwards to whole elements
  double mscale = 0;      // yarn: softmax is scaled by (0.1 * mscale * ln(factor) + 1)^2
  // Which elements rotate together: i and i + half, or 2i and 2i + 1.
  bool neighbours = false;
};

// Mixture of experts; count 0 means none.
struct ExpertsShape {
  int64_t count = 0;
  int64_t active = 0;       // per token
  int64_t hidden = 0;       // of one expert
  int64_t shared = 0;       // experts that every token uses, as one layer of shared * hidden
  int64_t first_layer = 0;  // the layers before it are dense
  bool normalised = false;  // the active experts' weights sum to one
  bool corrected = false;   // of the scores that choose them; no model has this
  bool sigmoid = false;     // scores are sigmoids of the logits; else their softmax
  // Experts are chosen from `active_groups` of `groups` equal groups, those whose two best experts
  // have the highest sum (DeepSeek-V3, section 2.1.2; transformers' DeepseekV3TopkRouter).
  int64_t groups = 1;
  int64_t active_groups = 1;
  double scale = 1;  // of the active experts' weights, after `normalised`
  // If not 0: all layers have biases, gate and up columns alternate, both are clamped to +-`limit`
  // (the gate from above only) and combined as (up + 1) * gate * sigmoid(1.702 * gate).
  double limit = 0;
};

// Multi-head latent attention, in which keys and values come from one small vector; rank 0 means
// none.
struct LatentShape {
  int64_t rank = 0;
  int64_t query_rank = 0;  // queries come from a small vector of their own; 0: from the hidden one
  int64_t plain_dim = 0;   // of a query or key head, without position
  int64_t rope_dim = 0;    // its rotated rest; all heads share that of the key
  int64_t value_dim = 0;
  double norm_epsilon = 0;  // of the small vectors' norms
};

// The sizes and the mathematics of a probe's model. The sizes are those of torchtitan's
// `debugmodel` flavor, because verl finds the flavor by (hidden, layers, vocabulary).
struct ModelShape {
  std::string family;        // the probe's "model"; HF's model_type is `hf_type`
  std::string hf_type;       // HF's model_type
  std::string architecture;  // HF class
  int64_t hidden;
  int64_t layers;
  int64_t vocabulary;
  int64_t heads;
  int64_t kv_heads;
  int64_t head_dim;                 // of queries and keys
  int64_t feed_forward;             // of dense layers
  int64_t positions;                // the configuration's longest text
  bool tied = false;                // the head is the embedding; the file has no lm_head
  bool value_head = false;          // a critic: one linear output per token instead of the head
  bool qk_norm = false;             // RMSNorm over head_dim of queries and keys, before RoPE
  bool projections_biased = false;  // q, k, v and o
  bool use_cache = true;            // of config.json; the reference has no cache
  bool sinks = false;               // one extra softmax logit per head, for a key of value zero
  int64_t window = 0;               // in layers 0, 2, 4, ...; see WindowOf
  // Softmax logits are scaled by 1 / sqrt(query_scalar) instead of 1 / sqrt(head_dim); 0: they are
  // not.
  int64_t query_scalar = 0;
  // Logits x become cap * tanh(x / cap): those of the softmax of attention, and those of the head.
  // 0: they stay (Gemma 2, arXiv 2408.00118, section 2).
  double attention_softcap = 0;
  double logit_softcap = 0;
  bool embedding_scaled = false;  // by sqrt(hidden)
  bool gelu = false;              // the gate of dense layers is a GELU by tanh; else SiLU
  bool norm_outputs = false;      // attention's and feed-forward's outputs have norms of their own
  double norm_offset = 0;         // a norm multiplies by norm_offset + its weight
  double norm_epsilon;
  RopeShape rope;
  ExpertsShape experts;
  LatentShape latent;

  // The sliding window of a layer in tokens: a query sees itself and the WindowOf - 1 tokens before
  // it in its document. 0 means no window.
  int64_t WindowOf(int64_t layer) const;
  // The factor on the products of queries and keys, without RopeSoftmaxFactor.
  double SoftmaxScale() const;
  // Whether the layer's feed-forward is made of experts.
  bool HasExperts(int64_t layer) const;
};

inline constexpr int64_t kBosToken = 1;
inline constexpr int64_t kEosToken = 2;
inline constexpr int64_t kPadToken = 0;
inline constexpr int64_t kFirstOrdinaryToken = 3;  // below it: pad, bos, eos
inline constexpr int64_t kMaxPositions = 4096;     // in a document of any model

// The names of all families that a probe may ask for.
std::vector<std::string> ModelFamilies();
// The shape of `family`; an unknown family is an error that names the closest one.
absl::StatusOr<ModelShape> FindModelShape(absl::string_view family);
// The same, with the head and the numbers of config.json that the probe asks for. A number that the
// family does not have, or that does not fit its others, is an error.
absl::StatusOr<ModelShape> ShapeOf(const Probe& probe);

}  // namespace bkm

#endif  // HARNESS_NUMERICS_MODEL_SHAPES_H_
