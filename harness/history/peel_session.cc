// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/history/peel_session.h"

#include <algorithm>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/judge/exception_text.h"
#include "harness/search/bisection.h"
#include "harness/store/folder_cache.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// What a message says in every version of the library: without numbers that stand by themselves,
// and without lists of what there is.
std::string WhatStays(absl::string_view text) {
  std::string kept;
  int open = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '[' || c == '{') ++open;
    if (open > 0) {
      if (c == ']' || c == '}') --open;
      continue;
    }
    const bool in_name = i > 0 && (absl::ascii_isalnum(text[i - 1]) || text[i - 1] == '_');
    if (!absl::ascii_isdigit(c) || in_name) {
      kept.push_back(c);
      continue;
    }
    while (i + 1 < text.size() && absl::ascii_isalnum(text[i + 1])) ++i;
    kept.push_back('#');
  }
  return kept;
}

absl::StatusOr<PeelSight> SightOf(const RunDirectory& directory, const CellRecord& cell) {
  PeelSight sight{.verdict = *cell.verdict};
  ASSIGN_OR_RETURN(const std::optional<Json> json, directory.ReadObservation(cell));
  if (!json) return sight;
  ASSIGN_OR_RETURN(const Observation observation, ObservationFromJson(*json, cell.id));
  const ObservedException* why = DecidingException(observation);
  if (!why) return sight;
  sight.what = absl::StrCat(why->type, ": ", WhatStays(FirstLine(why->message)));
  for (const ObservedFrame& frame : why->frames) {
    if (frame.owner == FrameOwner::kEngine || frame.owner == FrameOwner::kLibrary)
      sight.in_library = frame.owner == FrameOwner::kLibrary;
  }
  for (const ObservedFrame& frame : why->frames) {
    if (frame.owner == FrameOwner::kLibrary) break;
    if (frame.owner == FrameOwner::kEngine || frame.owner == FrameOwner::kHarness)
      sight.frames.push_back({frame.file, frame.function, frame.line});
  }
  // Down to the engine: what the harness does below it is not the engine's doing.
  const bool engine = std::any_of(why->frames.begin(), why->frames.end(), [](const auto& frame) {
    return frame.owner == FrameOwner::kEngine;
  });
  if (!engine) sight.frames.clear();
  return sight;
}

// A search that ends after so many outcomes.
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

std::string Listed(const std::vector<std::string>& files) {
  constexpr size_t kMost = 3;
  const std::vector<std::string> first(files.begin(),
                                       files.begin() + std::min(kMost, files.size()));
  return absl::StrCat(
      absl::StrJoin(first, ", "),
      files.size() > kMost ? absl::StrCat(" and ", files.size() - kMost, " more") : "");
}

ReadSource ReaderOf(const TreePatcher& patcher, const std::string& tree) {
  return [&patcher, tree](const std::string& path) { return patcher.Read(tree, path); };
}

}  // namespace

absl::StatusOr<PeelSession> PeelSession::Create(SessionSetup setup, const HistoryAxis& axis,
                                                Preparation& preparation, ApiSession* api,
                                                const InterruptSignals& signals, SearchLog& log,
                                                int most_trials) {
  const int late = axis.late();
  const std::string& source = axis.SourceAt(late);
  const std::string package = preparation.catalog().Find(source)->package;
  ASSIGN_OR_RETURN(const GitRepository repository, preparation.git().Open(source));
  ASSIGN_OR_RETURN(const auto above, repository.ObjectId(axis.CommitAt(late).id, package));
  PeelSession session(std::move(setup), axis, preparation, signals, log,
                      TreePatcher(repository, above ? package : absl::StrCat("src/", package),
                                  CacheDirectory() / "patches" / source));
  session.package_ = package;
  session.most_trials_ = most_trials;
  if (api) {
    const Cell& cell = axis.CellAt(late).cell;
    ASSIGN_OR_RETURN(session.versions_, api->versions());
    ASSIGN_OR_RETURN(session.check_, api->CheckOf(*FindEngineKind(cell.engine)));
    ASSIGN_OR_RETURN(const auto engine, session.versions_->Find({cell.engine_subject->ToString()}));
    session.engine_ = engine[0].tree;
  }
  ASSIGN_OR_RETURN(const auto lock, preparation.LockOf(axis.CellAt(late)));
  if (const auto* conflict = std::get_if<NoSolution>(&lock)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the newest pair has no runtime that both sides allow, so it cannot be peeled: ",
        conflict->message));
  }
  session.lock_ = std::get<RuntimeLock>(lock);
  return session;
}

absl::StatusOr<std::string> PeelSession::WithOlderModules(std::string tree,
                                                          const Removed& removed) const {
  ASSIGN_OR_RETURN(const auto before,
                   patcher_.TreeAt(absl::StrCat(axis_.CommitAt(removed.commit).id, "^1")));
  if (!before) return absl::NotFoundError("the commit before it has no such package");
  for (const Violation& broken : removed.breaks) {
    const std::string name = broken.asked.substr(0, broken.asked.find('('));
    ASSIGN_OR_RETURN(const auto source, FindNamedSource(name, ReaderOf(patcher_, *before)));
    std::vector<std::string> paths;
    if (source) paths.push_back(source->path);
    // "torchtitan/components/optimizer.py:102": where the library has what does not fit.
    const std::string file = broken.where.substr(0, broken.where.find(':'));
    if (absl::StartsWith(file, package_ + "/")) paths.push_back(file.substr(package_.size() + 1));
    if (paths.empty()) return absl::NotFoundError("no module of the library is named");
    for (const std::string& path : paths) {
      ASSIGN_OR_RETURN(const auto text, patcher_.Read(*before, path));
      if (!text) continue;
      ASSIGN_OR_RETURN(tree, patcher_.Write(tree, path, text));
    }
  }
  return tree;
}

absl::StatusOr<std::string> PeelSession::WithStubs(std::string tree, const Removed& removed) const {
  for (const Violation& broken : removed.breaks) {
    ASSIGN_OR_RETURN(const auto stub, MakeStub(broken, ReaderOf(patcher_, tree)));
    if (!stub) return absl::NotFoundError(absl::StrCat("no stub is possible for ", broken.asked));
    ASSIGN_OR_RETURN(tree, patcher_.Write(tree, stub->path, stub->text));
  }
  return tree;
}

absl::StatusOr<std::string> PeelSession::TakeOut(const std::string& tree,
                                                 const Removed& removed) const {
  if (removed.by == Removal::kOlderModules) return WithOlderModules(tree, removed);
  if (removed.by == Removal::kStub) return WithStubs(tree, removed);
  ASSIGN_OR_RETURN(const TreePatcher::Reverted reverted,
                   patcher_.Revert(tree, axis_.CommitAt(removed.commit).id));
  if (reverted.conflicts.empty() || removed.by == Removal::kOlderFiles) return reverted.tree;
  return absl::NotFoundError(absl::StrCat("later changes meet it in ", Listed(reverted.conflicts)));
}

absl::StatusOr<std::string> PeelSession::TreeWithout(int commit,
                                                     const std::vector<Removed>& removed) const {
  ASSIGN_OR_RETURN(const auto tree, patcher_.TreeAt(axis_.CommitAt(commit).id));
  if (!tree) {
    return absl::NotFoundError(absl::StrCat(axis_.CommitAt(commit).id, " has no ", package_));
  }
  std::vector<Removed> order;
  for (const Removed& one : removed) {
    if (one.commit < 0 || axis_.graph().IsAncestor(one.commit, commit)) order.push_back(one);
  }
  // Backwards through the history, as one reverts by hand; what is only put in place comes last.
  std::stable_sort(order.begin(), order.end(), [](const Removed& a, const Removed& b) {
    const bool a_last = a.by == Removal::kStub, b_last = b.by == Removal::kStub;
    return a_last != b_last ? b_last : a.commit > b.commit;
  });
  std::string variant = *tree;
  for (const Removed& one : order) {
    ASSIGN_OR_RETURN(variant, TakeOut(variant, one));
  }
  return variant;
}

absl::StatusOr<fs::path> PeelSession::FolderOf(const std::string& tree) const {
  return FolderCache(CacheDirectory() / "trees")
      .GetOrMake(absl::StrCat("patched-", tree), [&](const fs::path& folder) {
        return patcher_.Checkout(tree, folder / package_);
      });
}

absl::StatusOr<PlannedCell> PeelSession::CellOf(const std::string& tree, int commit,
                                                const std::vector<Removed>& removed) const {
  PlannedCell planned = axis_.CellAt(commit);
  ASSIGN_OR_RETURN(const fs::path folder, FolderOf(tree));
  planned.cell.library_subject = SubjectSpec{SourceKind::kPath, "", folder.string()};
  std::vector<std::string> without;
  for (const Removed& one : removed) {
    if (one.commit >= 0 && axis_.graph().IsAncestor(one.commit, commit))
      without.push_back(axis_.CommitAt(one.commit).id.substr(0, 9));
  }
  if (!without.empty())
    absl::StrAppend(&planned.cell.library_label, " without ", absl::StrJoin(without, ", "));
  planned.cell.lock = lock_->Key().substr(0, 12);
  planned.id = CellId(planned.cell);
  return planned;
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

absl::StatusOr<const PeelSession::Seen*> PeelSession::See(const std::vector<Removed>& removed) {
  ASSIGN_OR_RETURN(const std::string tree, TreeWithout(at_, removed));
  const auto known = seen_.find(tree);
  if (known != seen_.end()) return &known->second;
  ASSIGN_OR_RETURN(const PlannedCell planned, CellOf(tree, at_, removed));
  ASSIGN_OR_RETURN(PreparedCell pair, preparation_.PrepareIn(planned, *lock_));
  const std::string id = pair.record.id;
  std::vector<PreparedCell> cells = {pair};
  if (std::optional<PreparedCell> control = ControlOf(pair)) cells.push_back(*std::move(control));
  const RunDirectory directory(setup_.directory.root() / absl::StrCat("pair-", tree.substr(0, 12)));
  WarningsOnly observer(log_.console());
  ASSIGN_OR_RETURN(const RunRecord run, Measure({setup_.installation, setup_.matrix, directory,
                                                 setup_.measurement, observer, signals_},
                                                setup_.workers, std::move(cells)));
  if (!run.finished) return absl::CancelledError("interrupted");
  measured_ += static_cast<int>(run.cells.size()) - ReusedCells(run);
  Seen seen;
  for (const CellRecord& cell : run.cells) {
    if (cell.id != id) {
      seen.library_runs = cell.verdict->kind == VerdictKind::kOk;
      continue;
    }
    ASSIGN_OR_RETURN(seen.pair, SightOf(directory, cell));
  }
  log_.Line(absl::StrCat(
      removed.empty() && at_ == axis_.late() ? "the newest pair" : planned.cell.library_label,
      removed.empty() ? "" : absl::StrCat(" (the last by ", Name(removed.back().by), ")"), ": ",
      ShortText(seen.pair.verdict),
      seen.pair.verdict.message.empty() ? "" : absl::StrCat(": ", seen.pair.verdict.message),
      seen.library_runs.value_or(true) ? "" : "; the library alone does not run"));
  return &seen_.emplace(tree, std::move(seen)).first->second;
}

absl::StatusOr<PeelSight> PeelSession::Run(const std::vector<Removed>& removed) {
  ASSIGN_OR_RETURN(const Seen* const seen, See(removed));
  return seen->pair;
}

absl::StatusOr<std::optional<bool>> PeelSession::LibraryRuns(const std::vector<Removed>& removed) {
  ASSIGN_OR_RETURN(const Seen* const seen, See(removed));
  return seen->library_runs;
}

absl::StatusOr<std::vector<Violation>> PeelSession::Breaks(const std::vector<Removed>& removed) {
  if (!check_) return std::vector<Violation>();
  ASSIGN_OR_RETURN(const std::string tree, TreeWithout(at_, removed));
  ASSIGN_OR_RETURN(const fs::path folder, FolderOf(tree));
  ASSIGN_OR_RETURN(const auto library, versions_->Find({absl::StrCat("path:", folder.string())}));
  return check_->CheckRed(engine_, library[0].tree);
}

absl::StatusOr<const std::vector<Violation>*> PeelSession::BreaksAt(int commit) {
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

absl::StatusOr<PeelCulprit> PeelSession::FindBySources(const Violation& broken) {
  const std::vector<int> line = axis_.graph().Mainline(at_);
  PeelCulprit culprit;
  std::vector<int> unknown;  // since the last commit that is known to be so
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
      culprit.why = "the commits between have no such package";
      return culprit;
    }
  }
  culprit.why = culprit.commit < 0
                    ? "no commit of the history is so: it comes of what was taken out"
                    : absl::StrCat("it is so since ", axis_.Describe(line.back(), false),
                                   ", where the history at hand begins");
  culprit.commit = -1;
  return culprit;
}

absl::StatusOr<PeelCulprit> PeelSession::FindByRuns(const PeelSight& failure,
                                                    const std::vector<Removed>& removed) {
  ASSIGN_OR_RETURN(const std::string tree, TreeWithout(at_, removed));
  const RunDirectory directory(setup_.directory.root() /
                               absl::StrCat("search-", tree.substr(0, 12)));
  RETURN_IF_ERROR(CreateDirectories(directory.root()));
  SessionSetup search{.installation = setup_.installation,
                      .matrix = setup_.matrix,
                      .directory = directory,
                      .measurement = setup_.measurement,
                      .workers = setup_.workers,
                      .held = axis_.late()};
  search.cell_at = [&](int commit) -> absl::StatusOr<PlannedCell> {
    ASSIGN_OR_RETURN(const std::string variant, TreeWithout(commit, removed));
    return CellOf(variant, commit, removed);
  };
  // Bad is this very failure; good what got past it; all else says nothing of it.
  search.seen_as = [&](const CellRecord& cell) -> absl::StatusOr<Verdict> {
    ASSIGN_OR_RETURN(const PeelSight sight, SightOf(directory, cell));
    if (SameFailure(sight, failure)) return *cell.verdict;
    if (GotPast(sight, failure).value_or(false))
      return Verdict{.kind = VerdictKind::kOk, .stage = Stage::kGolden};
    return Verdict{.kind = VerdictKind::kSkipped,
                   .stage = cell.verdict->stage,
                   .reason = cell.verdict->reason,
                   .message = cell.verdict->message};
  };
  Bisection bisection(
      axis_.graph(),
      {.late = at_, .early = axis_.early(), .runtime_of = axis_.late(), .criterion = Criterion()});
  log_.Line(absl::StrCat("searching for what made it ", ShortText(failure.verdict)));
  BoundedSearch bounded(bisection, most_trials_);
  SearchSession session(std::move(search), axis_, preparation_, signals_, log_);
  ASSIGN_OR_RETURN(const bool finished,
                   session.Run(bounded, [&](const Trial&, const Outcome& outcome) {
                     const bool bad = outcome.verdict.kind != VerdictKind::kOk &&
                                      outcome.verdict.kind != VerdictKind::kSkipped;
                     return bad                                        ? "so"
                            : outcome.verdict.kind == VerdictKind::kOk ? "gets past it"
                                                                       : "says nothing of it";
                   }));
  measured_ += session.measured();
  if (!finished) return absl::CancelledError("interrupted");
  const BisectionResult& result = bisection.result();
  PeelCulprit culprit{.commit = result.culprit, .candidates = result.candidates, .why = result.why};
  if (bisection.done()) return culprit;
  culprit.commit = -1;
  culprit.why = absl::StrCat("most commits between fail otherwise: given up after ", most_trials_,
                             " of them");
  return culprit;
}

}  // namespace bkm
