// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_REACH_CHECK_H_
#define HARNESS_JUDGE_REACH_CHECK_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "harness/judge/check_result.h"
#include "harness/judge/relation.h"
#include "harness/model/observed_attention.h"

namespace bkm {

// The reach test covers the whole stack of layers: one token is changed, at flat position p of a
// packed batch. Under a causal mask inside each document, the log-prob at t depends on the tokens
// of t's document up to t and on the label t + 1. So exactly these log-probs may change:
// - p - 1, whose label changed. If p is the first token of its document, p - 1 is the last position
//   of the document before, which has no label of its own and is not judged. If it is the first
//   token of a row, it is the last position of that row: of the batch, or of a rank's share of it;
// - p to the end of p's document or, if every layer has a window, to the sum of their reaches.
//
// A critic's values have no labels: p - 1 may not change. Any other change is a leak, however
// small. These must change:
// - p - 1 if it is in the same document, and p, whose own input changed;
// - at least kMinReach of the positions from p to the second last of the document (the last one has
//   no label of its own). Far from p, low precision may round the change away; in right cells that
//   were measured, all positions change. A token that sees only itself or a short window changes
//   few.
inline constexpr double kMinReach = 0.75;

// The masks that the probe asks for, in all layers.
struct AskedMasks {
  PackedDocuments documents;
  std::vector<int64_t> windows;  // tokens, per layer; 0: no window
  // A log-prob that changes by no more than this counts as unchanged. 0 on a CPU, where the same
  // computation gives the same bits.
  double noise = 0;
  bool has_labels = true;  // false: a critic, whose value at t depends on tokens up to t only
  // The change that is allowed where nothing should change. Experts multiply their tokens together,
  // so a changed token may change the rounding of all documents. 0 for a dense model. The relations
  // of the layers still tell exactly what the masks are.
  double rounding = 0;
  // The documents of each row, as first and count; empty: one row.
  std::vector<std::pair<int64_t, int64_t>> rows = {};
  bool has_masks = true;  // false: AttentionBackend::told_borders
};

CheckResult CheckReach(const ObservedReach& reach, const AskedMasks& asked);

}  // namespace bkm

#endif  // HARNESS_JUDGE_REACH_CHECK_H_
