// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/history/peel_sources.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"

namespace bkm {

absl::StatusOr<PeelSources> PeelSources::Open(ApiSession& api, const HistoryAxis& axis) {
  const Cell& cell = axis.CellAt(axis.late()).cell;
  PeelSources sources(axis);
  ASSIGN_OR_RETURN(sources.versions_, api.versions());
  ASSIGN_OR_RETURN(sources.check_, api.CheckOf(*FindEngineKind(cell.engine)));
  ASSIGN_OR_RETURN(const auto engine, sources.versions_->Find({cell.engine_subject->ToString()}));
  sources.engine_ = engine[0].tree;
  return sources;
}

absl::StatusOr<std::vector<Violation>> PeelSources::BreaksIn(const std::filesystem::path& folder) {
  ASSIGN_OR_RETURN(const auto library, versions_->Find({absl::StrCat("path:", folder.string())}));
  return check_->CheckRed(engine_, library[0].tree);
}

absl::StatusOr<const std::vector<Violation>*> PeelSources::BreaksAt(int commit) {
  const auto [at, first] = breaks_.try_emplace(axis_.graph().content(commit));
  if (first) {
    ASSIGN_OR_RETURN(const auto trees,
                     versions_->TreesAt(axis_.SourceAt(commit), {axis_.CommitAt(commit).id}));
    if (trees[0]) {
      ASSIGN_OR_RETURN(at->second, check_->Check(engine_, trees[0]));
    }
  }
  return at->second ? &*at->second : nullptr;
}

absl::StatusOr<PeelCulprit> PeelSources::FindCulprit(const Violation& broken, int tip) {
  const std::vector<int> line = axis_.graph().Mainline(tip);
  PeelCulprit culprit;
  std::vector<int> unknown;  // commits without the package since the last known break
  for (const int commit : line) {
    ASSIGN_OR_RETURN(const std::vector<Violation>* const found, BreaksAt(commit));
    if (!found) {
      unknown.push_back(commit);
      continue;
    }
    const bool is_so = std::any_of(found->begin(), found->end(),
                                   [&](const Violation& v) { return SameBreak(v, broken); });
    if (is_so) {
      culprit.commit = commit;
      unknown.clear();
    } else if (culprit.commit >= 0) {
      if (unknown.empty()) return culprit;
      culprit.candidates = {unknown.rbegin(), unknown.rend()};
      culprit.candidates.push_back(culprit.commit);
      culprit.commit = -1;
      culprit.why = "the commits in between lack the package";
      return culprit;
    }
  }
  culprit.why = culprit.commit < 0
                    ? "no commit of the history has this break: it comes from the removed commits"
                    : absl::StrCat("it is broken since ", axis_.Describe(line.back(), false),
                                   ", where the searched history begins");
  culprit.commit = -1;
  return culprit;
}

}  // namespace bkm
