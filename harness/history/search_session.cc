// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/history/search_session.h"

#include <algorithm>
#include <fstream>
#include <regex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// Of a cell's id: the id without the number of its run, and that number.
std::pair<std::string, int> SplitRun(const std::string& id) {
  static const auto& kRun = *new std::regex(",repeat=([0-9]+)");
  std::smatch match;
  if (!std::regex_search(id, match, kRun)) return {id, 1};
  return {absl::StrCat(match.prefix().str(), match.suffix().str()), std::stoi(match[1])};
}

// Of the cells that a run directory holds, measured or not.
std::set<std::string> StoredIds(const RunDirectory& directory) {
  std::set<std::string> ids;
  std::error_code error;
  for (const fs::directory_entry& cell :
       fs::directory_iterator(directory.root() / "cells", error)) {
    if (!fs::exists(cell.path() / "observation.json", error)) continue;
    const absl::StatusOr<Json> request = ReadJsonFile(cell.path() / "request.json");
    // What cannot be read is measured again.
    if (request.ok() && request->is_object()) ids.insert(request->value("cell", ""));
  }
  return ids;
}

}  // namespace

void SearchLog::Line(const std::string& text) {
  console_.OnSetUp(text);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  std::ofstream(file_, std::ios::app) << absl::StrFormat("%8.1f s  %s\n", seconds, Printable(text));
}

SearchSession::SearchSession(SessionSetup setup, const HistoryAxis& axis, Preparation& preparation,
                             const InterruptSignals& signals, SearchLog& log)
    : setup_(std::move(setup)),
      axis_(axis),
      preparation_(preparation),
      signals_(signals),
      log_(log),
      stored_ids_(StoredIds(setup_.directory)) {}

SearchEffort SearchSession::effort(double seconds) const {
  return {.commits = axis_.graph().size(),
          .contents = axis_.graph().contents(),
          .probes = static_cast<int>(told_.size()),
          .measured = measured_,
          .seconds = seconds};
}

const RuntimeLock* SearchSession::FindLock(const std::string& key) const {
  for (const auto& [commit, lock] : locks_) {
    if (lock && lock->Key() == key) return &*lock;
  }
  return nullptr;
}

absl::StatusOr<const RuntimeLock*> SearchSession::LockOf(int commit) {
  const auto known = locks_.find(commit);
  if (known != locks_.end()) return known->second ? &*known->second : nullptr;
  ASSIGN_OR_RETURN(const auto resolved, preparation_.LockOf(axis_.CellAt(commit)));
  const auto* lock = std::get_if<RuntimeLock>(&resolved);
  std::optional<RuntimeLock>& kept = locks_[commit];
  if (lock) kept = *lock;
  return kept ? &*kept : nullptr;
}

absl::StatusOr<PreparedCell> SearchSession::Prepare(const Trial& probe) {
  PlannedCell planned = axis_.CellAt(probe.commit);
  if (setup_.cell_at) {
    ASSIGN_OR_RETURN(planned, setup_.cell_at(probe.commit));
  }
  const RuntimeLock* lock = nullptr;
  if (probe.runtime_of >= 0 && (setup_.cell_at || probe.runtime_of != probe.commit)) {
    ASSIGN_OR_RETURN(lock, LockOf(probe.runtime_of));
    if (lock && !probe.forced && !setup_.cell_at) {
      ASSIGN_OR_RETURN(const bool allowed, preparation_.Allows(planned, *lock));
      if (!allowed) lock = nullptr;
    }
  }
  if (lock) planned.cell.lock = lock->Key().substr(0, 12);
  const std::string first = CellId(planned.cell);
  planned.cell.repeat = probe.run;
  planned.id = CellId(planned.cell);
  absl::StatusOr<PreparedCell> prepared =
      lock ? preparation_.PrepareIn(planned, *lock) : preparation_.Prepare(planned);
  RETURN_IF_ERROR(prepared.status());
  // Its own runtime: kept, so that what it holds can be named.
  if (!lock) RETURN_IF_ERROR(LockOf(probe.commit).status());
  if (probe.run > 1) {
    prepared->record.role = CellRole::kRepeat;
    prepared->record.repeat_of = first;
  }
  return prepared;
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
                                  {.cell_code = cell_code_, .limits = setup_.matrix.limits});
  return (*request)->value("key", Json()) == wanted["key"];
}

absl::Status SearchSession::FindStored() {
  if (stored_ids_.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const RuntimeLock* held, LockOf(setup_.held));
  std::map<std::string, int> commits;
  for (int i = 0; i < axis_.graph().size(); ++i) {
    PlannedCell planned = axis_.CellAt(i);
    commits[planned.id] = i;
    if (held) planned.cell.lock = held->Key().substr(0, 12);
    commits[CellId(planned.cell)] = i;
  }
  for (const std::string& id : stored_ids_) {
    const auto [first, run] = SplitRun(id);
    const auto commit = commits.find(first);
    if (commit == commits.end()) continue;
    const Trial probe{.commit = commit->second, .run = run, .runtime_of = setup_.held};
    const absl::StatusOr<PreparedCell> cell = Prepare(probe);
    if (!cell.ok() || cell->record.id != id) continue;
    ASSIGN_OR_RETURN(const bool stored, IsStored(*cell));
    if (stored) stored_.push_back(probe);
  }
  if (!stored_.empty()) log_.Line(absl::StrCat(stored_.size(), " probes were measured before"));
  return absl::OkStatus();
}

void SearchSession::LoadRuntime(LocalExecutor& workers) {
  if (!stored_ids_.empty()) return;
  const absl::StatusOr<PreparedCell> cell =
      Prepare({.commit = setup_.held, .run = 1, .runtime_of = setup_.held});
  // What cannot be prepared is said where it is asked for.
  if (cell.ok() && !cell->stopped) workers.Load(cell->worker);
}

void SearchSession::Tell(HistorySearch& search, const Trial& probe, const Outcome& outcome,
                         double seconds) {
  told_.insert(probe);
  search.Tell(probe, outcome);
  std::string line = axis_.Describe(probe.commit, /*with_title=*/false);
  if (probe.run > 1) absl::StrAppend(&line, ", run ", probe.run);
  if (probe.forced || (probe.runtime_of >= 0 && probe.runtime_of != setup_.held))
    absl::StrAppend(&line, ", in runtime ", outcome.lock.substr(0, 12));
  absl::StrAppend(&line, ": ", setup_.seen_as ? "" : ShortText(outcome.verdict));
  const std::string comment = comment_(probe, outcome);
  if (setup_.seen_as) absl::StrAppend(&line, comment);
  if (seconds > 0) absl::StrAppend(&line, absl::StrFormat(" (%.1f s)", seconds));
  log_.Line(setup_.seen_as ? line : line + comment);
}

absl::StatusOr<std::vector<PreparedCell>> SearchSession::PrepareWanted(
    HistorySearch& search, const std::vector<Trial>& wanted) {
  std::vector<PreparedCell> cells;
  for (const Trial& probe : wanted) {
    absl::StatusOr<PreparedCell> cell = Prepare(probe);
    if (absl::IsNotFound(cell.status()) || absl::IsInvalidArgument(cell.status())) {
      // The commit lacks what a cell needs: a package, a file, requirements that can be read.
      Tell(search, probe,
           {{.kind = VerdictKind::kSkipped,
             .stage = Stage::kInstall,
             .reason = "no-source",
             .message = std::string(cell.status().message())}},
           0);
      continue;
    }
    RETURN_IF_ERROR(cell.status());
    const std::string id = cell->record.id;
    // Two probes can come to one cell, as where a commit keeps its own runtime.
    const auto judged = judged_.find(id);
    if (judged != judged_.end()) {
      ASSIGN_OR_RETURN(const Outcome outcome, OutcomeOf(judged->second));
      Tell(search, probe, outcome, 0);
      continue;
    }
    std::vector<Trial>& asked = asked_[id];
    asked.push_back(probe);
    if (asked.size() == 1) cells.push_back(*std::move(cell));
  }
  return cells;
}

absl::StatusOr<std::vector<PreparedCell>> SearchSession::Feed(HistorySearch& search, int room) {
  if (signals_.heard()) return std::vector<PreparedCell>();
  if (!stored_.empty()) {
    const std::vector<Trial> stored(stored_.begin(), stored_.end());
    stored_.clear();
    return PrepareWanted(search, stored);
  }
  for (;;) {
    // The next question must know what is told already.
    const std::vector<Trial> wanted = search.Wanted(room);
    if (wanted.empty()) return std::vector<PreparedCell>();
    ASSIGN_OR_RETURN(std::vector<PreparedCell> cells, PrepareWanted(search, wanted));
    if (!cells.empty()) return cells;
  }
}

absl::Status SearchSession::Judged(HistorySearch& search, const CellRecord& cell) {
  const auto asked = asked_.find(cell.id);
  if (asked == asked_.end() || !cell.verdict) return absl::OkStatus();
  judged_[cell.id] = cell;
  const std::vector<Trial> probes = std::move(asked->second);
  asked_.erase(asked);
  ASSIGN_OR_RETURN(const Outcome outcome, OutcomeOf(cell));
  for (const Trial& probe : probes)
    Tell(search, probe, outcome, cell.inherited_from ? 0 : cell.seconds);
  return absl::OkStatus();
}

absl::StatusOr<bool> SearchSession::Run(HistorySearch& search, RunObserver& observer,
                                        Comment comment) {
  comment_ = std::move(comment);
  ASSIGN_OR_RETURN(cell_code_, setup_.installation.CellCodeDigest());
  RETURN_IF_ERROR(FindStored());
  MeasurementOptions options = setup_.measurement;
  options.feed = [&](int room) { return Feed(search, room); };
  options.judged = [&](const CellRecord& cell) { return Judged(search, cell); };
  ASSIGN_OR_RETURN(run_, Measure(setup_.installation, setup_.matrix, setup_.directory, {}, options,
                                 observer, signals_));
  const auto judged =
      std::count_if(run_.cells.begin(), run_.cells.end(),
                    [](const CellRecord& cell) { return cell.verdict.has_value(); });
  measured_ = static_cast<int>(judged) - ReusedCells(run_);
  return run_.finished && search.done();
}

}  // namespace bkm
