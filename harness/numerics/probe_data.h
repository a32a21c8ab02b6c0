// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_PROBE_DATA_H_
#define HARNESS_NUMERICS_PROBE_DATA_H_

#include <cstdint>
#include <span>
#include <vector>

#include "harness/model/probe.h"
#include "harness/numerics/model_shapes.h"
#include "harness/numerics/model_weights.h"
#include "harness/numerics/packed_batch.h"

namespace bkm {

// Raise this whenever the same probe would get other bytes; part of every key that depends on them.
inline constexpr int kGeneratorVersion = 2;

// The contents of a probe folder, as pure functions of the probe. Each number comes from a
// counter-based stream with a name of its own.

// The elements of a weight, rounded to fp32, the type of the file.
std::vector<float> DrawWeight(const WeightShape& weight, uint64_t seed);
// The elements at these flat indices.
std::vector<float> DrawWeightAt(const WeightShape& weight, uint64_t seed,
                                std::span<const int64_t> indices);

// The batch of one step, of the documents that the probe has for it. The loss mask leaves out a
// short prompt and, in documents of at least 16 tokens, also an eighth of them in the middle, as
// between two answers.
PackedBatch DrawBatch(const Probe& probe, const ModelShape& shape, int step);

// The reach test in document 1 of step 0, or in the only document.
ReachTest DrawReachTest(const PackedBatch& batch, const ModelShape& shape, uint64_t seed);

// More reach tests in step 0, in rising order of position. In document 2 (or the last one): the
// first token, one in the middle, and the last before eos. If the model has a sliding window and a
// document is longer: the first token that the document's last token sees through the window, and
// the token before it.
std::vector<TokenChange> DrawReaches(const PackedBatch& batch, const ModelShape& shape,
                                     uint64_t seed);

// min(weight.places, numel) distinct flat indices, in rising order.
std::vector<int64_t> DrawPlaces(const WeightShape& weight, uint64_t seed);

}  // namespace bkm

#endif  // HARNESS_NUMERICS_PROBE_DATA_H_
