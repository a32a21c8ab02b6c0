// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/history/peel_runs.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/history/peel_sight.h"
#include "harness/search/bisection.h"

namespace bkm {
namespace {

// Ends a search after `most` outcomes.
class BoundedSearch : public HistorySearch {
 public:
  BoundedSearch(HistorySearch& search, int most) : search_(search), left_(most) {}
  std::vector<Trial> Wanted(int room) override {
    return left_ > 0 ? search_.Wanted(room) : std::vector<Trial>();
  }
  void Tell(const Trial& trial, const Outcome& outcome) override {
    --left_;
    search_.Tell(trial, outcome);
  }
  bool done() const override { return left_ <= 0 || search_.done(); }

 private:
  HistorySearch& search_;
  int left_;
};

}  // namespace

PeelRuns::PeelRuns(SearchSetup setup, SearchContext context, const PeelTrees& trees,
                   int most_trials)
    : setup_(std::move(setup)), context_(context), trees_(trees), most_trials_(most_trials) {}

absl::StatusOr<PeelRuns> PeelRuns::Open(SearchSetup setup, SearchContext context,
                                        const PeelTrees& trees, int most_trials) {
  PeelRuns runs(std::move(setup), context, trees, most_trials);
  const HistoryAxis& axis = context.axis;
  ASSIGN_OR_RETURN(const auto lock, context.preparation.LockOf(axis.CellAt(axis.late())));
  if (const auto* conflict = std::get_if<NoSolution>(&lock)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the newest pair has no runtime that both sides allow, so it cannot be peeled: ",
        conflict->message));
  }
  runs.lock_ = std::get<RuntimeLock>(lock);
  return runs;
}

absl::StatusOr<PlannedCell> PeelRuns::CellOf(const std::string& tree, int commit,
                                             const std::vector<Removed>& removed) const {
  PlannedCell planned = context_.axis.CellAt(commit);
  ASSIGN_OR_RETURN(const std::filesystem::path folder, trees_.FolderOf(tree));
  planned.cell.library_subject = SubjectSpec{SourceKind::kPath, "", folder.string()};
  std::vector<std::string> without;
  for (const Removed& one : removed) {
    if (one.commit >= 0 && context_.axis.graph().IsAncestor(one.commit, commit))
      without.push_back(context_.axis.CommitAt(one.commit).id.substr(0, 9));
  }
  if (!without.empty())
    absl::StrAppend(&planned.cell.library_label, " without ", absl::StrJoin(without, ", "));
  planned.cell.lock = lock_.Key().substr(0, 12);
  planned.id = CellId(planned.cell);
  return planned;
}

absl::StatusOr<PeelRuns::Seen> PeelRuns::Measured(const PlannedCell& planned,
                                                  const RunDirectory& directory) {
  ASSIGN_OR_RETURN(PreparedCell pair, context_.preparation.PrepareIn(planned, lock_));
  const std::string id = pair.record.id;
  std::vector<PreparedCell> cells = {pair};
  if (std::optional<PreparedCell> control = ControlOf(pair)) cells.push_back(*std::move(control));
  WarningsOnly observer(context_.log.console());
  ASSIGN_OR_RETURN(const RunRecord run, Measure({context_.installation, context_.matrix, directory,
                                                 setup_.measurement, observer, context_.signals},
                                                context_.workers, std::move(cells)));
  if (!run.finished) return absl::CancelledError("interrupted");
  measured_ += static_cast<int>(run.cells.size()) - ReusedCells(run);
  Seen seen;
  for (const CellRecord& cell : run.cells) {
    if (cell.id != id) {
      seen.library_runs = cell.verdict->kind == VerdictKind::kOk;
      continue;
    }
    ASSIGN_OR_RETURN(seen.pair, ReadSight(directory, cell));
  }
  return seen;
}

absl::StatusOr<const PeelRuns::Seen*> PeelRuns::See(int commit,
                                                    const std::vector<Removed>& removed) {
  ASSIGN_OR_RETURN(const std::string tree, trees_.Without(removed, commit));
  const auto known = seen_.find(tree);
  if (known != seen_.end()) return &known->second;
  ASSIGN_OR_RETURN(const PlannedCell planned, CellOf(tree, commit, removed));
  const RunDirectory directory(setup_.directory.root() / absl::StrCat("pair-", tree.substr(0, 12)));
  ASSIGN_OR_RETURN(Seen seen, Measured(planned, directory));
  const bool is_newest = removed.empty() && commit == context_.axis.late();
  context_.log.Line(absl::StrCat(
      is_newest ? "the newest pair" : planned.cell.library_label,
      removed.empty() ? "" : absl::StrCat(" (the last one by ", Name(removed.back().by), ")"), ": ",
      ShortText(seen.pair.verdict),
      seen.pair.verdict.message.empty() ? "" : absl::StrCat(": ", seen.pair.verdict.message),
      seen.library_runs.value_or(true) ? "" : "; the library alone does not run"));
  return &seen_.emplace(tree, std::move(seen)).first->second;
}

SearchSetup PeelRuns::SearchFor(const PeelSight& failure, const std::vector<Removed>& removed,
                                const RunDirectory& directory) const {
  SearchSetup search{
      .directory = directory, .measurement = setup_.measurement, .held = context_.axis.late()};
  search.cell_at = [&](int commit) -> absl::StatusOr<PlannedCell> {
    ASSIGN_OR_RETURN(const std::string variant, trees_.Without(removed, commit));
    return CellOf(variant, commit, removed);
  };
  // Bad: the same failure. Good: got past it. Anything else says nothing about it.
  search.seen_as = [&](const CellRecord& cell) -> absl::StatusOr<Verdict> {
    ASSIGN_OR_RETURN(const PeelSight sight, ReadSight(directory, cell));
    if (SameFailure(sight, failure)) return *cell.verdict;
    if (GotPast(sight, failure).value_or(false))
      return Verdict{.kind = VerdictKind::kOk, .stage = Stage::kGolden};
    return Verdict{.kind = VerdictKind::kSkipped,
                   .stage = cell.verdict->stage,
                   .reason = cell.verdict->reason,
                   .message = cell.verdict->message};
  };
  return search;
}

absl::StatusOr<PeelCulprit> PeelRuns::FindCulprit(int late, const PeelSight& failure,
                                                  const std::vector<Removed>& removed) {
  ASSIGN_OR_RETURN(const std::string tree, trees_.Without(removed, late));
  const RunDirectory directory(setup_.directory.root() /
                               absl::StrCat("search-", tree.substr(0, 12)));
  RETURN_IF_ERROR(CreateDirectories(directory.root()));
  const HistoryAxis& axis = context_.axis;
  Bisection bisection(
      axis.graph(),
      {.late = late, .early = axis.early(), .runtime_of = axis.late(), .criterion = Criterion()});
  context_.log.Line(
      absl::StrCat("searching for the commit that made it ", ShortText(failure.verdict)));
  BoundedSearch bounded(bisection, most_trials_);
  SearchSession session(SearchFor(failure, removed, directory), context_);
  ASSIGN_OR_RETURN(const bool finished,
                   session.Run(bounded, [&](const Trial&, const Outcome& outcome) {
                     const bool bad = outcome.verdict.kind != VerdictKind::kOk &&
                                      outcome.verdict.kind != VerdictKind::kSkipped;
                     return bad                                        ? "fails the same way"
                            : outcome.verdict.kind == VerdictKind::kOk ? "gets past it"
                                                                       : "says nothing about it";
                   }));
  measured_ += session.measured();
  if (!finished) return absl::CancelledError("interrupted");
  const BisectionResult& result = bisection.result();
  PeelCulprit culprit{.commit = result.culprit, .candidates = result.candidates, .why = result.why};
  if (bisection.done()) return culprit;
  culprit.commit = -1;
  culprit.why =
      absl::StrCat("gave up after ", most_trials_, " commits: most of them fail in other ways");
  return culprit;
}

}  // namespace bkm
