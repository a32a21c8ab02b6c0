// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_MODEL_WEIGHTS_H_
#define HARNESS_NUMERICS_MODEL_WEIGHTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "harness/numerics/model_shapes.h"

namespace bkm {

// One tensor of a model file: HF's canonical name, its shape, and the distribution of its values.
struct WeightShape {
  std::string name;
  std::vector<int64_t> shape;
  double mean;
  double standard_deviation;
  int64_t places = 256;  // the number of sampled elements, at most
  int64_t numel() const;
};

// All weights in the order of the forward pass. Every one of them moves the log-probs.
std::vector<WeightShape> WeightsOf(const ModelShape& shape);

// The tensors of a model file that the forward pass reads but training does not change.
std::vector<WeightShape> BuffersOf(const ModelShape& shape);

// All tensors of a model file: weights, then buffers.
std::vector<WeightShape> TensorsOf(const ModelShape& shape);

// torchtitan's HF files rename and transpose some weights: `name` is its name for the weight `of`,
// with the last two dimensions swapped.
struct TransposedCopy {
  std::string name;
  std::string of;
};
std::vector<TransposedCopy> TransposedCopiesOf(const ModelShape& shape);

}  // namespace bkm

#endif  // HARNESS_NUMERICS_MODEL_WEIGHTS_H_
