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

// Attention as it is, or wrong in one way: the answers of real faults, to be told apart from one
// another. Positions restart in every document in all of them.
struct AttentionVariant {
  enum class Sees {
    kRight,          // what lies before a token in its document, and in the layer's window
    kWithoutWindow,  // what lies before it in its document
    kDocument,       // all of its document
    kAllBefore,      // what lies before it in the packed batch
    kAll,            // the packed batch
  };
  Sees sees = Sees::kRight;
  bool without_rope = false;
  // Features of a token's output are ordered (head_dim, heads) instead of (heads, head_dim).
  bool transposed_heads = false;
  // Query head h reads key head h % kv_heads; right is h / (heads / kv_heads).
  bool interleaved_kv = false;
};

// Packed documents: how long each is, and where each token stands in its own.
struct Documents {
  explicit Documents(const std::vector<int64_t>& lengths);
  std::vector<int64_t> lengths;
  at::Tensor positions;  // int64 [tokens]
};

// What one document's attention depends on besides queries, keys and values.
struct AttentionRule {
  double scale;
  bool causal = true;
  int64_t window = 0;  // tokens that a query sees, itself the last of them; 0: all before it
  at::Tensor sinks;    // [heads]: each one more logit, of a key whose value is zero; or undefined
};

// Dense attention among all given tokens: softmax(scale q k^T) v for q [tokens, heads, dim],
// k [tokens, heads, dim] and v [tokens, heads, value_dim]. The result has v's shape.
at::Tensor DenseAttention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const AttentionRule& rule, const Arithmetic& arithmetic);

// x [tokens, hidden] through one layer's attention, projections included; `scope` holds HF's
// self_attn. Documents are told apart by looping over them: there is no mask to get wrong.
at::Tensor SelfAttention(const at::Tensor& x, const WeightScope& scope, const ModelShape& shape,
                         int64_t layer, const Documents& documents, const AttentionVariant& variant,
                         const Arithmetic& arithmetic);

}  // namespace bkm

#endif  // HARNESS_REFERENCE_ATTENTION_H_
