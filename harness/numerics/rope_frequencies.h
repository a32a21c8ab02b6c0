// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_ROPE_FREQUENCIES_H_
#define HARNESS_NUMERICS_ROPE_FREQUENCIES_H_

#include <cstdint>
#include <vector>

#include "harness/numerics/model_shapes.h"

namespace bkm {

// The size of the part of a query or key head that is rotated.
int64_t RotatedDim(const ModelShape& shape);

// Between which pairs YaRN slows down along their index: pairs up to `first` are kept, pairs from
// `last` on are divided by rope.factor (Peng et al. 2023, section 3.2, as in the authors' code).
struct YarnRamp {
  double first = 0;
  double last = 0;
};
YarnRamp YarnRampOf(const RopeShape& rope, int64_t dim);

// Radians per position of each of the dim / 2 rotating pairs: theta^(-2i/dim) (Su et al. 2021),
// slowed down as rope.scaling says: as Llama 3 does, or by YaRN's "NTK by parts" (Peng et al. 2023,
// section 3.2). The reference computes them in the type of an implementation (reference/rope.h).
std::vector<double> ExactRopeFrequencies(const RopeShape& rope, int64_t dim);

// YaRN's factor on the softmax logits, 1 for other scalings (Peng et al. 2023, section 3.4; the
// paper puts sqrt(1/t) on queries and on keys).
double RopeSoftmaxFactor(const RopeShape& rope);

}  // namespace bkm

#endif  // HARNESS_NUMERICS_ROPE_FREQUENCIES_H_
