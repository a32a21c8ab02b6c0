// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_HISTORY_PEEL_RUNS_H_
#define HARNESS_HISTORY_PEEL_RUNS_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/history/peel_trees.h"
#include "harness/history/search_session.h"
#include "harness/search/peel.h"

namespace bkm {

// Runs a pair whose library lacks some of its commits, always in the runtime of the newest pair,
// and remembers the outcomes. Each variant, and each search, has a run directory of its own below
// the session's.
class PeelRuns {
 public:
  // The outcome of one variant of the pair.
  struct Seen {
    PeelSight pair;
    std::optional<bool> library_runs;  // the library alone; absent: not known
  };

  // FailedPrecondition where the newest pair has no runtime. A search is given up after
  // `most_trials` commits. `trees` must outlive the result.
  static absl::StatusOr<PeelRuns> Open(SearchSetup setup, SearchContext context,
                                       const PeelTrees& trees, int most_trials);

  absl::StatusOr<const Seen*> See(int commit, const std::vector<Removed>& removed);
  // The first commit up to `late` at which the pair fails as `failure` does.
  absl::StatusOr<PeelCulprit> FindCulprit(int late, const PeelSight& failure,
                                          const std::vector<Removed>& removed);

  int measured() const { return measured_; }  // cells

 private:
  PeelRuns(SearchSetup setup, SearchContext context, const PeelTrees& trees, int most_trials);

  // The cell at a commit, with `tree` as its library; the label names the removed commits.
  absl::StatusOr<PlannedCell> CellOf(const std::string& tree, int commit,
                                     const std::vector<Removed>& removed) const;
  absl::StatusOr<Seen> Measured(const PlannedCell& planned, const RunDirectory& directory);
  // The setup of a search that tells `failure` from other outcomes.
  SearchSetup SearchFor(const PeelSight& failure, const std::vector<Removed>& removed,
                        const RunDirectory& directory) const;

  const SearchSetup setup_;
  const SearchContext context_;
  const PeelTrees& trees_;
  const int most_trials_;
  RuntimeLock lock_;
  std::map<std::string, Seen> seen_;  // by tree
  int measured_ = 0;
};

}  // namespace bkm

#endif  // HARNESS_HISTORY_PEEL_RUNS_H_
