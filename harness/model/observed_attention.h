// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_OBSERVED_ATTENTION_H_
#define HARNESS_MODEL_OBSERVED_ATTENTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bkm {

// What a cell showed of its attention; parts of Observation.

struct ObservedLayer {
  std::string layer;
  std::string class_name;
  std::string module;
};

struct ObservedMaskCall {
  std::string layer;
  std::string type;
  std::string digest;
  std::optional<int64_t> pairs;  // (query, key) pairs that may attend, where the mask alone says so
  std::string owner = {};        // caller, model, or the class that keeps it; empty: not said
};

// One token was changed: which log-probs moved.
struct ObservedReach {
  int64_t position = 0;
  std::vector<int64_t> moved;   // flat positions
  std::vector<double> largest;  // |difference| of each
};

// Which query attends to which key in one layer: the digest names a relation in
// tensors/attended.safetensors.
struct ObservedRelation {
  int64_t layer = 0;
  std::string relation;
};

// What one layer's attention dispatched in a call with gradients, as far as it tells of attention.
struct ObservedKernels {
  int64_t layer = 0;
  std::vector<std::string> forward;   // ops
  std::vector<std::string> backward;  // autograd nodes between its output and its inputs
};

}  // namespace bkm

#endif  // HARNESS_MODEL_OBSERVED_ATTENTION_H_
