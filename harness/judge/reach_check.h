// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_REACH_CHECK_H_
#define HARNESS_JUDGE_REACH_CHECK_H_

#include <cstdint>
#include <vector>

#include "harness/judge/check_result.h"
#include "harness/judge/relation.h"
#include "harness/model/observed_attention.h"

namespace bkm {

// The reach test, over the whole stack of layers: one token was changed, at flat position p of a
// packed batch. Under a causal mask inside each document, the log-prob at t is a function of the
// tokens of t's document up to t and of the label t + 1. So exactly these may move:
//   p - 1, whose label changed; where p is the first of its document, that is the last position of
//   the document before (of the batch), which has no label of its own and is not judged;
//   p to the end of p's document; where every layer has a window, to the sum of what they reach.
// A critic's values have no labels: there p - 1 may not move.
// Anything else that moves has seen what it must not: a leak, however small. And these must move:
//   p - 1 in the same document, and p, whose own input changed;
//   at least kMinReach of p to the second last position of the document (the last one has no label
//   of its own). Not all: far from p the change may be rounded away in low precision. Measured on
//   right cells: all move. A token that sees only itself, or only a short window, moves a few.
inline constexpr double kMinReach = 0.75;

// What is asked of the masks of all layers.
struct AskedMasks {
  PackedDocuments documents;
  std::vector<int64_t> windows;  // tokens, per layer; 0: none
  // A log-prob that moves by no more than this did not move. 0 on a CPU, where the same
  // computation gives the same bits.
  double noise = 0;
  bool has_labels = true;  // false: a critic, whose value at t is of the tokens up to t alone
};

CheckResult CheckReach(const ObservedReach& reach, const AskedMasks& asked);

}  // namespace bkm

#endif  // HARNESS_JUDGE_REACH_CHECK_H_
