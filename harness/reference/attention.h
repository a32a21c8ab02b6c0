// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REFERENCE_ATTENTION_H_
#define HARNESS_REFERENCE_ATTENTION_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "harness/numerics/model_shapes.h"
#include "harness/reference/arithmetic.h"
#include "harness/reference/layers.h"

namespace bkm {

// Right attention, or attention with one known fault. Positions restart in every document in all
// variants.
struct AttentionVariant {
  enum class Sees {
    kRight,          // earlier tokens of its document, within the layer's window
    kWithoutWindow,  // earlier tokens of its document
    kDocument,       // all of its document
    kAllBefore,      // earlier tokens of the packed batch
    kAll,            // the packed batch
  };
  Sees sees = Sees::kRight;
  bool without_rope = false;
  // A token's output features are ordered (head_dim, heads) instead of (heads, head_dim).
  bool transposed_heads = false;
  // Query head h reads key head h % kv_heads instead of h / (heads / kv_heads).
  bool interleaved_kv = false;
  bool without_softcap = false;
};

// Packed documents: their lengths, and each token's position in its document.
struct Documents {
  explicit Documents(const std::vector<int64_t>& lengths);
  std::vector<int64_t> lengths;
  at::Tensor positions;  // int64 [tokens]
};

// The parameters of attention within one document.
struct AttentionRule {
  double scale;
  double softcap = 0;  // see ModelShape::attention_softcap
  bool causal = true;
  int64_t window = 0;  // tokens that a query sees, itself the last; 0: no window
  at::Tensor sinks;    // [heads]: an extra logit for a key of value zero; may be undefined
};

// Dense attention among all given tokens: softmax(scale q k^T) v for q [tokens, heads, dim],
// k [tokens, heads, dim] and v [tokens, heads, value_dim]. The result has v's shape.
at::Tensor DenseAttention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const AttentionRule& rule, const Arithmetic& arithmetic);

// The same, head by head, with scores that are computed a second time in the backward pass: a long
// document's scores of all layers do not fit into memory.
at::Tensor LongAttention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         const AttentionRule& rule, const Arithmetic& arithmetic);

// One layer's attention, projections included, for x [tokens, hidden]; `scope` holds HF's
// self_attn. The code loops over documents, so there is no mask to get wrong.
at::Tensor SelfAttention(const at::Tensor& x, const WeightScope& scope, const ModelShape& shape,
                         int64_t layer, const Documents& documents, const AttentionVariant& variant,
                         const Arithmetic& arithmetic);

}  // namespace bkm

#endif  // HARNESS_REFERENCE_ATTENTION_H_
