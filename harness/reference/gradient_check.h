// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REFERENCE_GRADIENT_CHECK_H_
#define HARNESS_REFERENCE_GRADIENT_CHECK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "harness/reference/arithmetic.h"

namespace bkm {

inline const Arithmetic kExact = ExactArithmetic();

// Tests of gradients against central differences, for functions of fp64 tensors.
using TensorFunction = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

// Normally distributed numbers from this seed.
at::Tensor Random(at::IntArrayRef sizes, uint64_t seed);

// One element of a tensor.
double At(const at::Tensor& x, at::IntArrayRef index);

// Fails the running test if the shapes differ or any element differs by 1e-12 or more.
void ExpectClose(const at::Tensor& actual, const at::Tensor& expected);

// Checks every element of every input.
void CheckGradients(const TensorFunction& f, const std::vector<at::Tensor>& inputs);

// Checks one random direction of each input, for functions too large for CheckGradients.
void CheckGradientsAlongDirections(const TensorFunction& f, const std::vector<at::Tensor>& inputs);

}  // namespace bkm

#endif  // HARNESS_REFERENCE_GRADIENT_CHECK_H_
