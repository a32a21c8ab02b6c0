// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REFERENCE_DECODER_H_
#define HARNESS_REFERENCE_DECODER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "harness/numerics/model_shapes.h"
#include "harness/reference/arithmetic.h"
#include "harness/reference/attention.h"
#include "harness/reference/layers.h"

namespace bkm {

// A decoder-only transformer of any shape in model_shapes.cc, written from the papers and the
// weights' layout alone: it shares no code with torchtitan or transformers. A block is x +
// attention(norm(x)), then x + feed-forward(norm(x)), with a norm of each sum's second part in
// models with norm_outputs.
class Decoder {
 public:
  // `buffers`: tensors that the forward pass reads but training does not change.
  Decoder(const ModelShape& shape, const Arithmetic& arithmetic, Weights buffers = {})
      : shape_(shape), arithmetic_(arithmetic), buffers_(std::move(buffers)) {}

  // Logits [tokens, vocabulary] of packed documents, or the values [tokens, 1] of a critic.
  // `input_ids` is int64 [tokens].
  at::Tensor Logits(const Weights& weights, const at::Tensor& input_ids,
                    const std::vector<int64_t>& document_lengths,
                    const AttentionVariant& variant = {}) const;
  bool is_critic() const { return shape_.value_head; }

 private:
  WeightScope Head(const Weights& weights) const;

  ModelShape shape_;
  Arithmetic arithmetic_;
  Weights buffers_;
};

}  // namespace bkm

#endif  // HARNESS_REFERENCE_DECODER_H_
