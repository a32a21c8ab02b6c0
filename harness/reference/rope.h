// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REFERENCE_ROPE_H_
#define HARNESS_REFERENCE_ROPE_H_

#include <ATen/core/Tensor.h>

#include "harness/numerics/model_shapes.h"
#include "harness/reference/arithmetic.h"

namespace bkm {

// Radians per position of each of the dim / 2 rotating pairs, in `type`: theta^(-2i/dim) (Su et al.
// 2021), slowed down as rope.scaling says.
at::Tensor RopeFrequencies(const RopeShape& rope, int64_t dim, c10::ScalarType type);

// Rotates each pair of x [tokens, heads, dim] by position * frequency. `positions` is int64
// [tokens]. Pairs are (i, i + dim/2), or (2i, 2i + 1) if rope.neighbours is set.
at::Tensor ApplyRope(const at::Tensor& x, const at::Tensor& positions, const RopeShape& rope,
                     const Arithmetic& arithmetic);

}  // namespace bkm

#endif  // HARNESS_REFERENCE_ROPE_H_
