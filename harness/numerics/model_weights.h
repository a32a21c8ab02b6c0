// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_MODEL_WEIGHTS_H_
#define HARNESS_NUMERICS_MODEL_WEIGHTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "harness/numerics/model_shapes.h"

namespace bkm {

// One tensor of a model file: HF's canonical name, shape, and how it is drawn.
struct WeightShape {
  std::string name;
  std::vector<int64_t> shape;
  double mean;
  double standard_deviation;
  int64_t places = 256;  // at most so many elements are sampled
  int64_t numel() const;
};

// All weights in the order of the forward pass, every one of which moves the log-probs.
std::vector<WeightShape> WeightsOf(const ModelShape& shape);

// What a model file holds beside them: it is read in the forward pass, but nothing is learned.
std::vector<WeightShape> BuffersOf(const ModelShape& shape);

// torchtitan's HF files call some weights otherwise and hold them transposed: `name` is what it
// writes and reads for the weight `of`, with the last two dimensions swapped.
struct TransposedCopy {
  std::string name;
  std::string of;
};
std::vector<TransposedCopy> TransposedCopiesOf(const ModelShape& shape);

}  // namespace bkm

#endif  // HARNESS_NUMERICS_MODEL_WEIGHTS_H_
