// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_KERNEL_CALLS_H_
#define HARNESS_JUDGE_KERNEL_CALLS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "harness/model/observation.h"
#include "harness/numerics/model_shapes.h"

namespace bkm {

using DocumentLengths = std::vector<int64_t>;

// What the calls of a packed attention kernel need.
struct NeededCalls {
  ModelShape shape;
  std::string dtype;  // of queries; empty: any
  // Of each training step, the documents that this rank's calls are for.
  std::vector<DocumentLengths> documents;
  int64_t micro_batches = 1;
};

// The arguments that are not as needed, per layer and step, and those that break the contract of
// flash_attn's functions, whatever the kernel made of them:
// - borders: over a step's calls, each document can have been one sequence of its own, which
// padding
//   may follow. In which order, who attends to whom shows. Not compared in the evidence forwards.
// - cu_seqlens rise from 0 to the number of tokens, and max_seqlen is not below any sequence's
//   length.
// - causal, window, softcap, scale (with or without YaRN's factor, which may be in the sines),
//   dropout and dtype are the model's, in each layer.
std::vector<ObservedGpuDifference> CallDifferences(const ObservedBackend& seen,
                                                   const NeededCalls& needed);

// The first layer and step with training calls that nobody recorded: "layer 3, step 2"; empty if
// there is none.
std::string UnreadCalls(const ObservedBackend& seen, const NeededCalls& needed);

}  // namespace bkm

#endif  // HARNESS_JUDGE_KERNEL_CALLS_H_
