// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SEARCH_SPLIT_H_
#define HARNESS_SEARCH_SPLIT_H_

#include <vector>

#include "harness/search/commit_graph.h"

namespace bkm {

// Which commits to measure next. Any of `candidates` (in order) may be the culprit, each as likely
// as the other; measuring a commit tells whether the culprit is it or lies before it.
struct SplitQuestion {
  std::vector<int> candidates;
  std::vector<int> open;       // of these, the ones that may be measured
  std::vector<int> skipped;    // of these, the ones that could not be judged
  std::vector<int> in_flight;  // any commits that are being measured
};

// Up to `room` of `open` that, with those in flight, leave the fewest candidates on average:
// together, not one by one, so that two slots cut a line into thirds. Commits near ones that could
// not be judged are less likely to tell anything, and the more so the longer that stretch is known
// to be.
std::vector<int> BestSplits(const CommitGraph& graph, const SplitQuestion& question, int room);

}  // namespace bkm

#endif  // HARNESS_SEARCH_SPLIT_H_
