// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SEARCH_SPLIT_H_
#define HARNESS_SEARCH_SPLIT_H_

#include <vector>

#include "harness/search/commit_graph.h"

namespace bkm {

// The question of which commits to measure next. Each of `candidates` (in order) is equally likely
// to be the culprit. Measuring a commit tells whether the culprit is that commit or an ancestor of
// it.
struct SplitQuestion {
  std::vector<int> candidates;
  std::vector<int> open;       // candidates that may be measured
  std::vector<int> skipped;    // candidates that could not be judged
  std::vector<int> in_flight;  // commits that are being measured, candidates or not
};

// Up to `room` of `open` that, together with those in flight, leave the fewest candidates on
// average. They are optimised jointly, so two slots cut a line into thirds. A commit near a stretch
// that could not be judged is less likely to be judged itself; the longer the stretch, the farther
// this reaches.
std::vector<int> BestSplits(const CommitGraph& graph, const SplitQuestion& question, int room);

}  // namespace bkm

#endif  // HARNESS_SEARCH_SPLIT_H_
