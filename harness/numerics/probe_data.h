// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_PROBE_DATA_H_
#define HARNESS_NUMERICS_PROBE_DATA_H_

#include <cstdint>
#include <vector>

#include "harness/model/probe.h"
#include "harness/numerics/model_shapes.h"
#include "harness/numerics/packed_batch.h"

namespace bkm {

// Raised whenever the same probe would get other bytes; part of every key that depends on them.
inline constexpr int kGeneratorVersion = 1;

// What goes into a probe folder, as pure functions of the probe: the counter-based generator draws
// each number from a stream of its own name.

// Rounded to fp32, the type of the file.
std::vector<float> DrawWeight(const WeightShape& weight, uint64_t seed);

// The batch of step `step`: the probe's documents, rotated by one more document each step, so that
// neither packing nor document borders repeat. The loss leaves out a short prompt.
PackedBatch DrawBatch(const Probe& probe, const ModelShape& shape, int step);

// In document 1 of step 0, or in the only one.
ReachTest DrawReachTest(const PackedBatch& batch, const ModelShape& shape, uint64_t seed);

// min(256, numel) distinct flat indices, in rising order.
std::vector<int64_t> DrawPlaces(const WeightShape& weight, uint64_t seed);

}  // namespace bkm

#endif  // HARNESS_NUMERICS_PROBE_DATA_H_
