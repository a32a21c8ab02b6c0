// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/reference/layers.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tanh.h>

#include <vector>

namespace bkm {

using at::Tensor;

// Autograd adds up the parts of the gradient of x, in the type of x.
Tensor Product(const Tensor& x, const Tensor& weight, Divided divided,
               const Arithmetic& arithmetic) {
  const int parts = arithmetic.reductions.features;
  if (divided == Divided::kNone || parts == 1) return at::matmul(x, weight);
  std::vector<Tensor> products;
  if (divided == Divided::kOutputs) {
    for (const Tensor& part : weight.chunk(parts, 1)) products.push_back(at::matmul(x, part));
    return at::cat(products, -1);
  }
  const std::vector<Tensor> inputs = x.chunk(parts, -1);
  const std::vector<Tensor> weights = weight.chunk(parts, 0);
  Tensor sum = at::matmul(inputs[0], weights[0]);
  for (size_t i = 1; i < inputs.size(); ++i) sum = sum + at::matmul(inputs[i], weights[i]);
  return sum;
}

Tensor Linear(const Tensor& x, const WeightScope& scope, Divided divided,
              const Arithmetic& arithmetic) {
  const auto operand = [&](const Tensor& tensor) { return tensor.to(arithmetic.matmul); };
  const Tensor weight = operand(scope.At("weight"));
  // An undivided product stays with at::linear: the bits of goldens and floors depend on its
  // kernel.
  if (divided != Divided::kNone && arithmetic.reductions.features > 1) {
    const Tensor product = Product(operand(x), weight.t(), divided, arithmetic);
    return scope.Has("bias") ? product + operand(scope.At("bias")) : product;
  }
  if (!scope.Has("bias")) return at::linear(operand(x), weight);
  return at::linear(operand(x), weight, operand(scope.At("bias")));
}

Tensor RmsNorm(const Tensor& x, const Tensor& weight, double epsilon,
               const Arithmetic& arithmetic) {
  // Ranks of tensor parallelism have a part of the tokens or of the heads each, and add up the
  // gradient of the weight.
  if (const int parts = arithmetic.reductions.features; parts > 1) {
    Arithmetic undivided = arithmetic;
    undivided.reductions.features = 1;
    std::vector<Tensor> normed;
    for (const Tensor& part : x.chunk(parts, 0))
      normed.push_back(RmsNorm(part, weight, epsilon, undivided));
    return at::cat(normed, 0);
  }
  const Tensor wide = x.to(arithmetic.inner());
  const Tensor scale = at::rsqrt(wide.square().mean(-1, /*keepdim=*/true) + epsilon);
  return (wide * scale * weight.to(arithmetic.inner())).to(arithmetic.elementwise);
}

Tensor FeedForward(const Tensor& x, const WeightScope& scope, const Arithmetic& arithmetic,
                   bool gelu) {
  const Tensor product = Linear(x, scope.Below("gate_proj"), Divided::kOutputs, arithmetic);
  const Tensor gate = gelu ? at::gelu(product, "tanh") : at::silu(product);
  const Tensor up = Linear(x, scope.Below("up_proj"), Divided::kOutputs, arithmetic);
  return Linear(gate * up, scope.Below("down_proj"), Divided::kInputs, arithmetic);
}

Tensor Capped(const Tensor& x, double cap) { return at::tanh(x / cap) * cap; }

Tensor LabelLogProbs(const Tensor& logits, const Tensor& labels, const Arithmetic& arithmetic) {
  const Tensor log_probs = at::log_softmax(logits.to(arithmetic.log_probs), -1);
  return log_probs.gather(-1, labels.unsqueeze(-1)).squeeze(-1);
}

// log(sum(exp(x))) - sum(softmax(x) * x), as engines compute it: in bf16 the difference of two
// rounded numbers.
Tensor Entropy(const Tensor& logits, const Arithmetic& arithmetic) {
  const Tensor x = logits.to(arithmetic.log_probs);
  return at::logsumexp(x, -1) - (at::softmax(x, -1) * x).sum(-1);
}

}  // namespace bkm
