// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/reference/rope.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <numbers>

#include "harness/numerics/rope_frequencies.h"

namespace bkm {

using at::Tensor;

namespace {

constexpr double kTurn = 2 * std::numbers::pi;

// Llama 3: wavelengths longer than original length / low factor are stretched by `factor`,
// wavelengths shorter than original length / high factor are kept, and frequencies between the two
// are interpolated.
Tensor SlowedLikeLlama3(const RopeShape& rope, const Tensor& frequencies) {
  const Tensor turns = frequencies * (rope.original_positions / kTurn);  // over the original length
  const Tensor kept = ((turns - rope.low_frequency_factor) /
                       (rope.high_frequency_factor - rope.low_frequency_factor))
                          .clamp(0, 1);
  return frequencies * kept + frequencies / rope.factor * (1 - kept);
}

// YaRN's "NTK by parts": pairs with at least beta_fast turns over the original length are kept,
// pairs with at most beta_slow are slowed down by `factor`. As in the authors' code, pairs between
// the two are interpolated along their index.
Tensor SlowedLikeYarn(const RopeShape& rope, int64_t dim, const Tensor& frequencies) {
  const auto [first, last] = YarnRampOf(rope, dim);
  const Tensor slowed =
      ((at::arange(dim / 2, frequencies.options()) - first) / (last - first)).clamp(0, 1);
  return frequencies * (1 - slowed) + frequencies / rope.factor * slowed;
}

}  // namespace

Tensor RopeFrequencies(const RopeShape& rope, int64_t dim, c10::ScalarType type) {
  // In the type that implementations use: in fp32 angles are off by up to position * 2^-24, which a
  // right run may be.
  const auto options = at::TensorOptions().dtype(type);
  const Tensor exponents = at::arange(0, dim, 2, options) / static_cast<double>(dim);
  const Tensor frequencies = at::pow(rope.theta, -exponents);
  if (rope.scaling == "llama3") return SlowedLikeLlama3(rope, frequencies);
  if (rope.scaling == "yarn") return SlowedLikeYarn(rope, dim, frequencies);
  return frequencies;
}

Tensor ApplyRope(const Tensor& x, const Tensor& positions, const RopeShape& rope,
                 const Arithmetic& arithmetic) {
  const Tensor frequencies = RopeFrequencies(rope, x.size(2), arithmetic.inner());
  const Tensor angles = at::outer(positions.to(arithmetic.inner()), frequencies).unsqueeze(1);
  const Tensor cosine = angles.cos().to(arithmetic.elementwise);  // [tokens, 1, dim / 2]
  const Tensor sine = angles.sin().to(arithmetic.elementwise);
  const Tensor wide = x.to(arithmetic.elementwise);
  // The two elements of a pair lie along the last dimension or the one before it.
  const int64_t pair = rope.neighbours ? -1 : -2;
  const Tensor pairs = rope.neighbours ? wide.unflatten(2, {-1, 2}) : wide.unflatten(2, {2, -1});
  const Tensor a = pairs.select(pair, 0), b = pairs.select(pair, 1);
  return at::stack({a * cosine - b * sine, b * cosine + a * sine}, pair).flatten(2);
}

}  // namespace bkm
