// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REFERENCE_RECOMPUTED_H_
#define HARNESS_REFERENCE_RECOMPUTED_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace bkm {

using TensorFunction = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

// function(inputs), with its gradients. What `function` computes on the way is not kept for the
// backward pass, which calls it a second time instead (activation checkpointing, Chen et al. 2016).
// `function` must depend on nothing else that needs a gradient, and give the same bits each time.
at::Tensor Recomputed(TensorFunction function, const std::vector<at::Tensor>& inputs);

}  // namespace bkm

#endif  // HARNESS_REFERENCE_RECOMPUTED_H_
