// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace bkm {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

// Of a pair with this frequency: 1 keeps it, 0 divides it by rope.factor.
double KeptByLlama3(const RopeShape& rope, double frequency) {
  const double turns = frequency * static_cast<double>(rope.original_positions) / kTurn;
  return (turns - rope.low_frequency_factor) /
         (rope.high_frequency_factor - rope.low_frequency_factor);
}

// The same for the pair with this index.
double KeptByYarn(const YarnRamp& ramp, int64_t pair) {
  return 1 - (static_cast<double>(pair) - ramp.first) / (ramp.last - ramp.first);
}

}  // namespace

int64_t RotatedDim(const ModelShape& shape) {
  return shape.latent.rank > 0 ? shape.latent.rope_dim : shape.head_dim;
}

YarnRamp YarnRampOf(const RopeShape& rope, int64_t dim) {
  // The index of the pair with this many turns over the original length: solve
  // turns = original * theta^(-2i/dim) / 2 pi.
  const auto pair_of = [&](double turns) {
    const double ratio = static_cast<double>(rope.original_positions) / (turns * kTurn);
    return static_cast<double>(dim) * std::log(ratio) / (2 * std::log(rope.theta));
  };
  YarnRamp ramp = {pair_of(rope.beta_fast), pair_of(rope.beta_slow)};
  if (rope.truncated) ramp = {std::floor(ramp.first), std::ceil(ramp.last)};
  return {std::max(ramp.first, 0.0), std::min(ramp.last, static_cast<double>(dim - 1))};
}

std::vector<double> ExactRopeFrequencies(const RopeShape& rope, int64_t dim) {
  const YarnRamp ramp = rope.scaling == "yarn" ? YarnRampOf(rope, dim) : YarnRamp();
  std::vector<double> frequencies;
  for (int64_t pair = 0; pair < dim / 2; ++pair) {
    const double exponent = -2.0 * static_cast<double>(pair) / static_cast<double>(dim);
    const double frequency = std::pow(rope.theta, exponent);
    double kept = 1;
    if (rope.scaling == "llama3") kept = KeptByLlama3(rope, frequency);
    if (rope.scaling == "yarn") kept = KeptByYarn(ramp, pair);
    kept = std::clamp(kept, 0.0, 1.0);
    frequencies.push_back(frequency * kept + frequency / rope.factor * (1 - kept));
  }
  return frequencies;
}

double RopeSoftmaxFactor(const RopeShape& rope) {
  if (rope.scaling != "yarn") return 1;
  const double factor = 0.1 * rope.mscale * std::log(rope.factor) + 1;
  return factor * factor;
}

}  // namespace bkm
