// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_HISTORY_SEARCH_SESSION_H_
#define HARNESS_HISTORY_SEARCH_SESSION_H_

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/history/report_fields.h"
#include "harness/search/history_axis.h"
#include "harness/search/trial.h"
#include "harness/session/measurement.h"

namespace bkm {

// What people follow a search by: a line on the console, and with its time in search.log.
class SearchLog {
 public:
  SearchLog(std::filesystem::path file, RunObserver& console)
      : file_(std::move(file)), console_(console), start_(std::chrono::steady_clock::now()) {}
  void Line(const std::string& text);

 private:
  const std::filesystem::path file_;
  RunObserver& console_;
  const std::chrono::steady_clock::time_point start_;
};

struct SessionSetup {
  const Installation& installation;
  const Matrix& matrix;
  const RunDirectory& directory;
  MeasurementOptions measurement;  // feed and judged are the session's
  int held = -1;                   // the commit whose runtime the search uses first
  // Instead of the cell at a commit: one of a variant of its sources, in the held runtime. NotFound
  // where there is none.
  std::function<absl::StatusOr<PlannedCell>(int commit)> cell_at = nullptr;
  // Instead of a cell's verdict: what the search is told.
  std::function<absl::StatusOr<Verdict>(const CellRecord&)> seen_as = nullptr;
};

// Runs the probes of a search as cells of one run: every one in the runtime that it asks for, where
// the commit's declared pins allow that. What the run directory holds already is told first, and
// not measured again.
class SearchSession {
 public:
  SearchSession(SessionSetup setup, const HistoryAxis& axis, Preparation& preparation,
                const InterruptSignals& signals, SearchLog& log);

  // Starts to load the runtime of the search while its first commits are still to be chosen; not
  // where something is stored already, which may be all that it takes.
  void LoadRuntime(LocalExecutor& workers);

  // Told of each outcome after the search was: returns what to add to its line in the log.
  using Comment = std::function<std::string(const Trial&, const Outcome&)>;
  // Whether the search came to its end; else the user stopped it.
  absl::StatusOr<bool> Run(HistorySearch& search, RunObserver& observer, Comment comment);

  int measured() const { return measured_; }  // cells, by this session
  SearchEffort effort(double seconds) const;
  const RunRecord& run() const { return run_; }
  // The lock with this key, of those that were used; null for another.
  const RuntimeLock* FindLock(const std::string& key) const;

 private:
  // The probe's cell, or why there can be none: that says nothing of the pair.
  absl::StatusOr<PreparedCell> Prepare(const Trial& probe);
  absl::StatusOr<std::vector<PreparedCell>> Feed(HistorySearch& search, int room);
  // Prepares what the search wants; tells what needs no run.
  absl::StatusOr<std::vector<PreparedCell>> PrepareWanted(HistorySearch& search,
                                                          const std::vector<Trial>& wanted);
  absl::StatusOr<Outcome> OutcomeOf(const CellRecord& cell) const;
  absl::Status FindStored();
  absl::StatusOr<bool> IsStored(const PreparedCell& cell) const;
  absl::Status Judged(HistorySearch& search, const CellRecord& cell);
  void Tell(HistorySearch& search, const Trial& probe, const Outcome& outcome, double seconds);
  // The runtime that the commit's own cell has; absent where there is none.
  absl::StatusOr<const RuntimeLock*> LockOf(int commit);

  const SessionSetup setup_;
  const HistoryAxis& axis_;
  Preparation& preparation_;
  const InterruptSignals& signals_;
  SearchLog& log_;
  Comment comment_;

  const std::set<std::string> stored_ids_;  // cells that an earlier search left in the directory
  std::map<int, std::optional<RuntimeLock>> locks_;  // by commit
  std::map<std::string, std::vector<Trial>> asked_;  // by cell
  std::map<std::string, CellRecord> judged_;         // by cell
  std::deque<Trial> stored_;                         // to be told first
  std::set<Trial> told_;
  std::string cell_code_;
  int measured_ = 0;
  RunRecord run_;
};

}  // namespace bkm

#endif  // HARNESS_HISTORY_SEARCH_SESSION_H_
