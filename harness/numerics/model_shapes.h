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

// How positions turn queries and keys: rotary embedding and its extension to longer texts.
struct RopeShape {
  double theta = 0;
  // HF's rope_type: "default"; "llama3" (long wavelengths are slowed down by `factor`); "yarn"
  // (Peng et al. 2023: frequencies below beta_slow turns over the original length are, too).
  std::string scaling = "default";
  double factor = 1;
  int64_t original_positions = 0;
  double low_frequency_factor = 0;  // llama3
  double high_frequency_factor = 0;
  double beta_fast = 0;  // yarn
  double beta_slow = 0;
  bool truncated = true;  // yarn's two boundaries are rounded outwards to whole elements
  double mscale = 0;      // yarn: softmax is scaled by (0.1 * mscale * ln(factor) + 1)^2
  // Which elements turn together: i and i + half, or 2i and 2i + 1.
  bool neighbours = false;
};

// Feed-forward layers of which each token uses a few; count 0: none.
struct ExpertsShape {
  int64_t count = 0;
  int64_t active = 0;       // per token
  int64_t hidden = 0;       // of one expert
  int64_t shared = 0;       // experts that every token uses, as one layer of shared * hidden
  int64_t first_layer = 0;  // the layers before it are dense
  bool normalised = false;  // the active experts' weights sum to one
  // Biases everywhere, and gate and up columns alternate, are clamped to +-`limit` (the gate from
  // above only) and combined as (up + 1) * gate * sigmoid(1.702 * gate).
  double limit = 0;
};

// Multi-head latent attention: keys and values are made from one small vector; count 0: none.
struct LatentShape {
  int64_t rank = 0;
  int64_t plain_dim = 0;  // of a query or key head, without position
  int64_t rope_dim = 0;   // the rest of it, turned by position, of the key shared by all heads
  int64_t value_dim = 0;
};

// The sizes and the mathematics of a probe's model: those of torchtitan's `debugmodel` flavor,
// since verl finds the flavor by (hidden, layers, vocabulary).
struct ModelShape {
  std::string family;        // the probe's "model"; HF's model_type is `hf_type`
  std::string hf_type;       // HF's model_type
  std::string architecture;  // HF class
  int64_t hidden;
  int64_t layers;
  int64_t vocabulary;
  int64_t heads;
  int64_t kv_heads;
  int64_t head_dim;         // of queries and keys
  int64_t feed_forward;     // of dense layers
  int64_t positions;        // the longest text that the configuration speaks of
  bool tied = false;        // the head is the embedding; then no lm_head in the file
  bool value_head = false;  // a critic: one linear output, a value per token, in place of the head
  bool qk_norm = false;     // RMSNorm over head_dim of queries and keys, before RoPE
  bool projections_biased = false;  // q, k, v and o
  bool sinks = false;               // per head one more softmax logit, of a key whose value is zero
  int64_t window = 0;               // of layers 0, 2, 4, ...; see WindowOf
  double norm_epsilon;
  RopeShape rope;
  ExpertsShape experts;
  LatentShape latent;

  // Sliding window of a layer in tokens: a query sees itself and WindowOf - 1 tokens before it in
  // its document. 0: all of them.
  int64_t WindowOf(int64_t layer) const;
  // Whether the layer's feed-forward is made of experts.
  bool HasExperts(int64_t layer) const;
};

inline constexpr int64_t kEosToken = 2;
inline constexpr int64_t kFirstOrdinaryToken = 3;  // below it: pad, bos, eos
inline constexpr int64_t kMaxPositions = 4096;     // of a document of any model

// The row of `family`; unknown: an error with the closest name.
absl::StatusOr<ModelShape> FindModelShape(absl::string_view family);
// The same, with the head that the probe asks for.
absl::StatusOr<ModelShape> ShapeOf(const Probe& probe);

}  // namespace bkm

#endif  // HARNESS_NUMERICS_MODEL_SHAPES_H_
