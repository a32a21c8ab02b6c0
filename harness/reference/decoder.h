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
// weights' layout alone; it knows neither torchtitan nor transformers. A block is
// x + attention(norm(x)), then x + feed-forward(norm(x)).
class Decoder {
 public:
  // `buffers`: what the model reads and does not learn.
  Decoder(const ModelShape& shape, const Arithmetic& arithmetic, Weights buffers = {})
      : shape_(shape), arithmetic_(arithmetic), buffers_(std::move(buffers)) {}

  // Logits [tokens, vocabulary] of packed documents, of a critic [tokens, 1]: values. `input_ids`
  // is int64 [tokens].
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
