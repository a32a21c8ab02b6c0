// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_HISTORY_PEEL_SESSION_H_
#define HARNESS_HISTORY_PEEL_SESSION_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/apicheck/stub.h"
#include "harness/history/search_session.h"
#include "harness/search/peel.h"
#include "harness/session/api_session.h"
#include "harness/source/tree_patcher.h"

namespace bkm {

// Runs a pair whose library lacks some of its commits: variants of the library's tree are made by
// git, kept in the cache, and run in the runtime of the newest pair, those of older commits too.
// Each variant, and each search, has a run directory of its own below the session's.
class PeelSession : public PeelWorld {
 public:
  // Without an `api` the sources are not asked. The axis is the library's. A search by runs is
  // given up after `most_trials` commits.
  static absl::StatusOr<PeelSession> Create(SessionSetup setup, const HistoryAxis& axis,
                                            Preparation& preparation, ApiSession* api,
                                            const InterruptSignals& signals, SearchLog& log,
                                            int most_trials);

  int newest() const override { return axis_.late(); }
  void MoveTo(int commit) override { at_ = commit; }
  std::vector<int> Since(int commit) override;
  absl::StatusOr<PeelSight> Run(const std::vector<Removed>& removed) override;
  absl::StatusOr<std::optional<bool>> LibraryRuns(const std::vector<Removed>& removed) override;
  absl::StatusOr<std::vector<Violation>> Breaks(const std::vector<Removed>& removed) override;
  absl::StatusOr<PeelCulprit> FindBySources(const Violation& broken) override;
  absl::StatusOr<PeelCulprit> FindByRuns(const PeelSight& failure,
                                         const std::vector<Removed>& removed) override;

  int measured() const { return measured_; }

 private:
  // What a variant of the pair came to.
  struct Seen {
    PeelSight pair;
    std::optional<bool> library_runs;
  };

  PeelSession(SessionSetup setup, const HistoryAxis& axis, Preparation& preparation,
              const InterruptSignals& signals, SearchLog& log, TreePatcher patcher)
      : setup_(std::move(setup)),
        axis_(axis),
        at_(axis.late()),
        preparation_(preparation),
        signals_(signals),
        log_(log),
        patcher_(std::move(patcher)) {}

  // The library's tree at a commit without those of `removed` that lie before it. NotFound, with
  // the reason, where one cannot be taken out.
  absl::StatusOr<std::string> TreeWithout(int commit, const std::vector<Removed>& removed) const;
  absl::StatusOr<std::string> TakeOut(const std::string& tree, const Removed& removed) const;
  absl::StatusOr<std::string> WithOlderModules(std::string tree, const Removed& removed) const;
  absl::StatusOr<std::string> WithStubs(std::string tree, const Removed& removed) const;
  // A folder with the tree in it.
  absl::StatusOr<std::filesystem::path> FolderOf(const std::string& tree) const;
  // The cell at a commit with that tree, which lacks those of `removed` that lie before it.
  absl::StatusOr<PlannedCell> CellOf(const std::string& tree, int commit,
                                     const std::vector<Removed>& removed) const;
  absl::StatusOr<const Seen*> See(const std::vector<Removed>& removed);
  // What is certainly not there at a commit of the history as it is; absent: it has no package.
  absl::StatusOr<const std::vector<Violation>*> BreaksAt(int commit);

  const SessionSetup setup_;
  const HistoryAxis& axis_;
  int at_;  // the commit of the pair
  Preparation& preparation_;
  const InterruptSignals& signals_;
  SearchLog& log_;
  const TreePatcher patcher_;
  std::string package_;
  int most_trials_ = 0;

  Versions* versions_ = nullptr;  // null: the sources are not asked
  ApiCheck* check_ = nullptr;
  Tree engine_;
  std::map<int, std::optional<std::vector<Violation>>> breaks_;  // by content
  std::map<std::string, Seen> seen_;                             // by tree
  std::optional<RuntimeLock> lock_;
  int measured_ = 0;
};

}  // namespace bkm

#endif  // HARNESS_HISTORY_PEEL_SESSION_H_
