// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/history/peel_session.h"

#include <algorithm>

#include "harness/base/check.h"
#include "harness/base/status_macros.h"

namespace bkm {

absl::StatusOr<PeelSession> PeelSession::Create(SearchSetup setup, SearchContext context,
                                                ApiSession* api, int most_trials) {
  ASSIGN_OR_RETURN(PeelTrees opened, PeelTrees::Open(context.axis, context.preparation));
  auto trees = std::make_unique<PeelTrees>(std::move(opened));
  std::optional<PeelSources> sources;
  if (api) {
    ASSIGN_OR_RETURN(PeelSources opened_sources, PeelSources::Open(*api, context.axis));
    sources.emplace(std::move(opened_sources));
  }
  ASSIGN_OR_RETURN(PeelRuns runs, PeelRuns::Open(std::move(setup), context, *trees, most_trials));
  return PeelSession(context.axis, std::move(trees), std::move(runs), std::move(sources));
}

std::vector<int> PeelSession::Since(int commit) {
  std::vector<int> since;
  for (const int later : axis_.graph().Mainline(axis_.late())) {
    if (later != commit && !axis_.graph().IsAncestor(commit, later)) break;
    since.push_back(later);
  }
  std::reverse(since.begin(), since.end());
  return since;
}

absl::StatusOr<PeelSight> PeelSession::Run(const std::vector<Removed>& removed) {
  ASSIGN_OR_RETURN(const PeelRuns::Seen* const seen, runs_.See(at_, removed));
  return seen->pair;
}

absl::StatusOr<std::optional<bool>> PeelSession::LibraryRuns(const std::vector<Removed>& removed) {
  ASSIGN_OR_RETURN(const PeelRuns::Seen* const seen, runs_.See(at_, removed));
  return seen->library_runs;
}

absl::StatusOr<std::vector<Violation>> PeelSession::Breaks(const std::vector<Removed>& removed) {
  if (!sources_) return std::vector<Violation>();
  ASSIGN_OR_RETURN(const std::string tree, trees_->Without(removed, at_));
  ASSIGN_OR_RETURN(const std::filesystem::path folder, trees_->FolderOf(tree));
  return sources_->BreaksIn(folder);
}

absl::StatusOr<PeelCulprit> PeelSession::FindBySources(const Violation& broken) {
  HARNESS_CHECK(sources_) << "only the sources know of violations";
  return sources_->FindCulprit(broken, at_);
}

absl::StatusOr<PeelCulprit> PeelSession::FindByRuns(const PeelSight& failure,
                                                    const std::vector<Removed>& removed) {
  return runs_.FindCulprit(at_, failure, removed);
}

}  // namespace bkm
