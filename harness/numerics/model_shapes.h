// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_MODEL_SHAPES_H_
#define HARNESS_NUMERICS_MODEL_SHAPES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/json.h"

namespace bkm {

// The sizes of a probe's model: those of torchtitan's `debugmodel` flavor, since verl finds the
// flavor by (hidden, layers, vocabulary).
struct ModelShape {
  std::string family;        // the probe's "model"
  std::string architecture;  // HF class
  int64_t hidden;
  int64_t layers;
  int64_t vocabulary;
  int64_t heads;
  int64_t kv_heads;
  int64_t head_dim;
  int64_t feed_forward;
  bool tied;     // the head is the embedding; then no lm_head in the file
  bool qk_norm;  // RMSNorm over head_dim of queries and keys, before RoPE
  double rope_theta;
  double norm_epsilon;
};

// One weight: HF's canonical name, shape, and how it is drawn.
struct WeightShape {
  std::string name;
  std::vector<int64_t> shape;
  double mean;
  double standard_deviation;
  int64_t numel() const;
};

inline constexpr int64_t kEosToken = 2;
inline constexpr int64_t kFirstOrdinaryToken = 3;  // below it: pad, bos, eos
inline constexpr int64_t kMaxPositions = 4096;

// The row of `family`; unknown: an error with the closest name.
absl::StatusOr<ModelShape> FindModelShape(absl::string_view family);

// All weights in the order of the forward pass.
std::vector<WeightShape> WeightsOf(const ModelShape& shape);

// HF's config.json, which transformers 4 and 5 read alike.
OrderedJson HfConfig(const ModelShape& shape);

}  // namespace bkm

#endif  // HARNESS_NUMERICS_MODEL_SHAPES_H_
