// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_HISTORY_SEARCH_SESSION_H_
#define HARNESS_HISTORY_SEARCH_SESSION_H_

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/history/report_fields.h"
#include "harness/history/search_log.h"
#include "harness/history/trial_cells.h"
#include "harness/search/history_axis.h"
#include "harness/search/trial.h"
#include "harness/session/measurement.h"

namespace bkm {

// What all searches of a command share. Everything must outlive the searches.
struct SearchContext {
  const Installation& installation;
  const Matrix& matrix;
  const HistoryAxis& axis;
  Preparation& preparation;
  CellExecutor& workers;
  const InterruptSignals& signals;
  SearchLog& log;
};

// One search.
struct SearchSetup {
  RunDirectory directory;
  MeasurementOptions measurement;
  int held = -1;                   // the commit whose runtime the search uses first
  CellAtCommit cell_at = nullptr;  // null: the axis' cells
  // The verdict that the search is told; null: the cell's own.
  std::function<absl::StatusOr<Verdict>(const CellRecord&)> seen_as = nullptr;
};

// Runs the trials of a search as cells of one run, each in the runtime that it asks for, where the
// commit's declared pins allow that. Outcomes in the run directory are told first and not measured
// again.
class SearchSession : private CellFeed {
 public:
  SearchSession(SearchSetup setup, const SearchContext& context);

  // Starts to load the runtime of the search while its first commits are still being chosen. Does
  // nothing if outcomes are stored: they may be all that the search needs.
  void LoadRuntime();

  // Called with each outcome after the search was told; returns what to add to its line in the log.
  using Comment = std::function<std::string(const Trial&, const Outcome&)>;
  // Whether the search came to its end; else the user stopped it.
  absl::StatusOr<bool> Run(HistorySearch& search, Comment comment);

  int measured() const { return measured_; }  // cells, by this session
  SearchEffort effort(double seconds) const;
  // TrialCells::FindLock.
  const RuntimeLock* FindLock(const std::string& key) const { return cells_.FindLock(key); }

 private:
  absl::StatusOr<std::vector<PreparedCell>> Next(int room) override;
  // Prepares what the search wants; tells what needs no run.
  absl::StatusOr<std::vector<PreparedCell>> PrepareWanted(const std::vector<Trial>& wanted);
  absl::StatusOr<Outcome> OutcomeOf(const CellRecord& cell) const;
  absl::Status FindStored();
  absl::StatusOr<bool> IsStored(const PreparedCell& cell) const;
  absl::Status Judged(const CellRecord& cell) override;
  void Tell(const Trial& trial, const Outcome& outcome, double seconds);

  const SearchSetup setup_;
  const SearchContext context_;
  TrialCells cells_;
  HistorySearch* search_ = nullptr;  // while Run runs
  Comment comment_;

  const std::set<std::string> stored_ids_;  // cells that an earlier search left in the directory
  std::map<std::string, std::vector<Trial>> asked_;  // by cell
  std::map<std::string, CellRecord> judged_;         // by cell
  std::deque<Trial> stored_;                         // to be told first
  std::set<Trial> told_;
  std::string cell_code_;
  int measured_ = 0;
};

}  // namespace bkm

#endif  // HARNESS_HISTORY_SEARCH_SESSION_H_
