// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REFERENCE_LAYERS_H_
#define HARNESS_REFERENCE_LAYERS_H_

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "harness/reference/arithmetic.h"

namespace bkm {

// Tensors by HF's canonical names, in HF's layout.
using Weights = std::map<std::string, at::Tensor>;

// The weights below a prefix such as "model.layers.0.mlp.".
class WeightScope {
 public:
  WeightScope(const Weights& weights, std::string prefix)
      : weights_(weights), prefix_(std::move(prefix)) {}

  const at::Tensor& At(const std::string& name) const { return weights_.at(prefix_ + name); }
  bool Has(const std::string& name) const { return weights_.contains(prefix_ + name); }
  WeightScope Below(const std::string& name) const { return {weights_, prefix_ + name + "."}; }

 private:
  const Weights& weights_;
  std::string prefix_;
};

// Whose features tensor parallelism divides among ranks: those that a weight takes or gives.
enum class Divided { kNone, kInputs, kOutputs };

// x W for a weight [inputs, outputs], in the operands' type.
at::Tensor Product(const at::Tensor& x, const at::Tensor& weight, Divided divided,
                   const Arithmetic& arithmetic);

// x W^T with the scope's "weight", plus its "bias" if it has one.
at::Tensor Linear(const at::Tensor& x, const WeightScope& scope, Divided divided,
                  const Arithmetic& arithmetic);

// x / sqrt(mean(x^2) + epsilon) * weight over the last dimension (Zhang and Sennrich 2019).
at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double epsilon,
                   const Arithmetic& arithmetic);

// SwiGLU or, with `gelu`, GEGLU with the GELU by tanh (Shazeer 2020): down(act(gate(x)) * up(x)),
// with the scope's gate_proj, up_proj, down_proj.
at::Tensor FeedForward(const at::Tensor& x, const WeightScope& scope, const Arithmetic& arithmetic,
                       bool gelu = false);

// cap * tanh(x / cap).
at::Tensor Capped(const at::Tensor& x, double cap);

// log_softmax(logits)[t, labels[t]] for logits [tokens, vocabulary].
at::Tensor LabelLogProbs(const at::Tensor& logits, const at::Tensor& labels,
                         const Arithmetic& arithmetic);

// The entropy of softmax(logits) in nats for logits [tokens, vocabulary]: [tokens].
at::Tensor Entropy(const at::Tensor& logits, const Arithmetic& arithmetic);

}  // namespace bkm

#endif  // HARNESS_REFERENCE_LAYERS_H_
