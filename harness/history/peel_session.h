// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_HISTORY_PEEL_SESSION_H_
#define HARNESS_HISTORY_PEEL_SESSION_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/history/peel_runs.h"
#include "harness/history/peel_sources.h"
#include "harness/history/peel_trees.h"
#include "harness/search/peel.h"

namespace bkm {

// The real PeelWorld: variants of the library's tree, their runs, and the static check.
class PeelSession : public PeelWorld {
 public:
  // The axis must be the library's. Null `api`: the sources are not asked. A search by runs is
  // given up after `most_trials` commits.
  static absl::StatusOr<PeelSession> Create(SearchSetup setup, SearchContext context,
                                            ApiSession* api, int most_trials);

  int newest() const override { return axis_.late(); }
  void MoveTo(int commit) override { at_ = commit; }
  std::vector<int> Since(int commit) override;
  absl::StatusOr<PeelSight> Run(const std::vector<Removed>& removed) override;
  absl::StatusOr<std::optional<bool>> LibraryRuns(const std::vector<Removed>& removed) override;
  absl::StatusOr<std::vector<Violation>> Breaks(const std::vector<Removed>& removed) override;
  absl::StatusOr<PeelCulprit> FindBySources(const Violation& broken) override;
  absl::StatusOr<PeelCulprit> FindByRuns(const PeelSight& failure,
                                         const std::vector<Removed>& removed) override;

  int measured() const { return runs_.measured(); }  // cells

 private:
  PeelSession(const HistoryAxis& axis, std::unique_ptr<PeelTrees> trees, PeelRuns runs,
              std::optional<PeelSources> sources)
      : axis_(axis),
        at_(axis.late()),
        trees_(std::move(trees)),
        runs_(std::move(runs)),
        sources_(std::move(sources)) {}

  const HistoryAxis& axis_;
  int at_;                            // the commit of the pair
  std::unique_ptr<PeelTrees> trees_;  // runs_ refers to it, also when the session moves
  PeelRuns runs_;
  std::optional<PeelSources> sources_;
};

}  // namespace bkm

#endif  // HARNESS_HISTORY_PEEL_SESSION_H_
