// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/history/search_session.h"

#include <algorithm>
#include <regex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/base/files.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// Splits a cell's id into the id of its first run and the number of its run.
std::pair<std::string, int> SplitRun(const std::string& id) {
  static const auto& kRun = *new std::regex(",repeat=([0-9]+)");
  std::smatch match;
  if (!std::regex_search(id, match, kRun)) return {id, 1};
  return {absl::StrCat(match.prefix().str(), match.suffix().str()), std::stoi(match[1])};
}

// Ids of the cells that have an observation in the run directory.
std::set<std::string> StoredIds(const RunDirectory& directory) {
  std::set<std::string> ids;
  std::error_code error;
  for (const fs::directory_entry& cell :
       fs::directory_iterator(directory.root() / "cells", error)) {
    if (!fs::exists(cell.path() / "observation.json", error)) continue;
    const absl::StatusOr<Json> request = ReadJsonFile(cell.path() / "request.json");
    // Cells with an unreadable request are measured again.
    if (request.ok()) ids.insert(TextOf(*request, "cell"));
  }
  return ids;
}

}  // namespace

SearchSession::SearchSession(SearchSetup setup, const SearchContext& context)
    : setup_(std::move(setup)),
      context_(context),
      cells_(context.axis, context.preparation, setup_.cell_at),
      stored_ids_(StoredIds(setup_.directory)) {}

SearchEffort SearchSession::effort(double seconds) const {
  const CommitGraph& graph = context_.axis.graph();
  return {.commits = graph.size(),
          .contents = graph.contents(),
          .probes = static_cast<int>(told_.size()),
          .measured = measured_,
          .seconds = seconds};
}

absl::StatusOr<Outcome> SearchSession::OutcomeOf(const CellRecord& cell) const {
  Outcome outcome{*cell.verdict, cell.lock};
  if (setup_.seen_as) {
    ASSIGN_OR_RETURN(outcome.verdict, setup_.seen_as(cell));
  }
  return outcome;
}

absl::StatusOr<bool> SearchSession::IsStored(const PreparedCell& cell) const {
  const absl::StatusOr<std::optional<Json>> request = setup_.directory.ReadRequest(cell.record);
  if (!request.ok() || !*request) return false;
  const Json wanted = MakeRequest(cell, setup_.directory.cell(cell.record),
                                  {.cell_code = cell_code_,
                                   .limits = context_.matrix.limits,
                                   .sandbox = setup_.measurement.sandbox});
  return (*request)->value("key", Json()) == wanted["key"];
}

absl::Status SearchSession::FindStored() {
  if (stored_ids_.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const RuntimeLock* held, cells_.LockOf(setup_.held));
  std::map<std::string, int> commits;
  for (int i = 0; i < context_.axis.graph().size(); ++i) {
    PlannedCell planned = context_.axis.CellAt(i);
    commits[planned.id] = i;
    if (held) planned.cell.lock = held->Key().substr(0, 12);
    commits[CellId(planned.cell)] = i;
  }
  for (const std::string& id : stored_ids_) {
    const auto [first, run] = SplitRun(id);
    const auto commit = commits.find(first);
    if (commit == commits.end()) continue;
    const Trial trial{.commit = commit->second, .run = run, .runtime_of = setup_.held};
    const absl::StatusOr<PreparedCell> cell = cells_.Prepare(trial);
    if (!cell.ok() || cell->record.id != id) continue;
    ASSIGN_OR_RETURN(const bool stored, IsStored(*cell));
    if (stored) stored_.push_back(trial);
  }
  if (!stored_.empty())
    context_.log.Line(absl::StrCat(stored_.size(), " trials were measured before"));
  return absl::OkStatus();
}

void SearchSession::LoadRuntime() {
  if (!stored_ids_.empty()) return;
  const absl::StatusOr<PreparedCell> cell =
      cells_.Prepare({.commit = setup_.held, .run = 1, .runtime_of = setup_.held});
  // An error of the preparation is reported when the search asks for this trial.
  if (cell.ok() && !cell->stopped) context_.workers.Load(cell->worker);
}

void SearchSession::Tell(const Trial& trial, const Outcome& outcome, double seconds) {
  told_.insert(trial);
  search_->Tell(trial, outcome);
  std::string line = context_.axis.Describe(trial.commit, /*with_title=*/false);
  if (trial.run > 1) absl::StrAppend(&line, ", run ", trial.run);
  if (trial.forced || (trial.runtime_of >= 0 && trial.runtime_of != setup_.held))
    absl::StrAppend(&line, ", in runtime ", outcome.lock.substr(0, 12));
  absl::StrAppend(&line, ": ", setup_.seen_as ? "" : ShortText(outcome.verdict));
  const std::string comment = comment_(trial, outcome);
  if (setup_.seen_as) absl::StrAppend(&line, comment);
  if (seconds > 0) absl::StrAppend(&line, absl::StrFormat(" (%.1f s)", seconds));
  context_.log.Line(setup_.seen_as ? line : line + comment);
}

absl::StatusOr<std::vector<PreparedCell>> SearchSession::PrepareWanted(
    const std::vector<Trial>& wanted) {
  std::vector<PreparedCell> cells;
  for (const Trial& trial : wanted) {
    absl::StatusOr<PreparedCell> cell = cells_.Prepare(trial);
    if (absl::IsNotFound(cell.status()) || absl::IsInvalidArgument(cell.status())) {
      // The commit lacks something that a cell needs: a package, a file, readable requirements.
      Tell(trial,
           {{.kind = VerdictKind::kSkipped,
             .stage = Stage::kInstall,
             .reason = "no-source",
             .message = std::string(cell.status().message())}},
           0);
      continue;
    }
    RETURN_IF_ERROR(cell.status());
    const std::string id = cell->record.id;
    // Two trials can share a cell, for example if a commit keeps its own runtime.
    const auto judged = judged_.find(id);
    if (judged != judged_.end()) {
      ASSIGN_OR_RETURN(const Outcome outcome, OutcomeOf(judged->second));
      Tell(trial, outcome, 0);
      continue;
    }
    std::vector<Trial>& asked = asked_[id];
    asked.push_back(trial);
    if (asked.size() == 1) cells.push_back(*std::move(cell));
  }
  return cells;
}

absl::StatusOr<std::vector<PreparedCell>> SearchSession::Next(int room) {
  if (context_.signals.heard()) return std::vector<PreparedCell>();
  if (!stored_.empty()) {
    const std::vector<Trial> stored(stored_.begin(), stored_.end());
    stored_.clear();
    return PrepareWanted(stored);
  }
  for (;;) {
    // PrepareWanted may have told outcomes, so ask again.
    const std::vector<Trial> wanted = search_->Wanted(room);
    if (wanted.empty()) return std::vector<PreparedCell>();
    ASSIGN_OR_RETURN(std::vector<PreparedCell> cells, PrepareWanted(wanted));
    if (!cells.empty()) return cells;
  }
}

absl::Status SearchSession::Judged(const CellRecord& cell) {
  const auto asked = asked_.find(cell.id);
  if (asked == asked_.end() || !cell.verdict) return absl::OkStatus();
  judged_[cell.id] = cell;
  const std::vector<Trial> trials = std::move(asked->second);
  asked_.erase(asked);
  ASSIGN_OR_RETURN(const Outcome outcome, OutcomeOf(cell));
  for (const Trial& trial : trials)
    Tell(trial, outcome, cell.inherited_from ? 0 : cell.cost.seconds);
  return absl::OkStatus();
}

absl::StatusOr<bool> SearchSession::Run(HistorySearch& search, Comment comment) {
  search_ = &search;
  comment_ = std::move(comment);
  ASSIGN_OR_RETURN(cell_code_, context_.installation.CellCodeDigest());
  RETURN_IF_ERROR(FindStored());
  WarningsOnly observer(context_.log.console());
  ASSIGN_OR_RETURN(const RunRecord run,
                   Measure({context_.installation, context_.matrix, setup_.directory,
                            setup_.measurement, observer, context_.signals},
                           context_.workers, *this));
  const auto judged = std::count_if(run.cells.begin(), run.cells.end(), [](const CellRecord& cell) {
    return cell.verdict.has_value();
  });
  measured_ = static_cast<int>(judged) - ReusedCells(run);
  return run.finished && search.done();
}

}  // namespace bkm
