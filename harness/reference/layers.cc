// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/reference/layers.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>

namespace bkm {

using at::Tensor;

Tensor Linear(const Tensor& x, const WeightScope& scope, const Arithmetic& arithmetic) {
  const auto operand = [&](const Tensor& tensor) { return tensor.to(arithmetic.matmul); };
  if (!scope.Has("bias")) return at::linear(operand(x), operand(scope.At("weight")));
  return at::linear(operand(x), operand(scope.At("weight")), operand(scope.At("bias")));
}

Tensor RmsNorm(const Tensor& x, const Tensor& weight, double epsilon,
               const Arithmetic& arithmetic) {
  const Tensor wide = x.to(arithmetic.inner());
  const Tensor scale = at::rsqrt(wide.square().mean(-1, /*keepdim=*/true) + epsilon);
  return (wide * scale * weight.to(arithmetic.inner())).to(arithmetic.elementwise);
}

Tensor FeedForward(const Tensor& x, const WeightScope& scope, const Arithmetic& arithmetic) {
  const Tensor gate = at::silu(Linear(x, scope.Below("gate_proj"), arithmetic));
  const Tensor up = Linear(x, scope.Below("up_proj"), arithmetic);
  return Linear(gate * up, scope.Below("down_proj"), arithmetic);
}

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
