// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REFERENCE_EXPERTS_H_
#define HARNESS_REFERENCE_EXPERTS_H_

#include <ATen/core/Tensor.h>

#include "harness/numerics/model_shapes.h"
#include "harness/reference/arithmetic.h"
#include "harness/reference/layers.h"

namespace bkm {

// The experts that each token uses, and their weights.
struct Routing {
  at::Tensor experts;  // int64 [tokens, active]
  at::Tensor weights;  // [tokens, active]
};

// Chooses the `active` experts with the highest score + correction among those of the token's
// `active_groups` best groups. A score is the softmax or the sigmoid of the logits [tokens,
// experts]. Their weights are their scores or, if normalised, their shares of the scores, times
// `scale`; if corrected, with the correction. `correction` [experts] may be undefined.
Routing ChooseExperts(const at::Tensor& logits, const at::Tensor& correction,
                      const ExpertsShape& shape);

// min(gate, limit) and up within +-limit, combined as (up + 1) * gate * sigmoid(1.702 * gate);
// gate and up alternate in the last dimension of `gate_up`.
at::Tensor ClampedSwiGlu(const at::Tensor& gate_up, double limit);

// One layer's experts for x [tokens, hidden]; `scope` holds HF's mlp.
at::Tensor MixtureOfExperts(const at::Tensor& x, const WeightScope& scope,
                            const ExpertsShape& shape, const Arithmetic& arithmetic);

}  // namespace bkm

#endif  // HARNESS_REFERENCE_EXPERTS_H_
