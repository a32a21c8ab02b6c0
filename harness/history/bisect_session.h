// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_HISTORY_BISECT_SESSION_H_
#define HARNESS_HISTORY_BISECT_SESSION_H_

#include <chrono>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "harness/base/json.h"
#include "harness/history/api_session.h"
#include "harness/history/search_session.h"
#include "harness/search/criterion.h"
#include "harness/session/one_cell.h"

namespace bkm {

// The cell whose history is searched, and what a search needs besides its question. Everything
// that it refers to must outlive the search.
struct HistorySearchContext {
  std::chrono::steady_clock::time_point start;  // of the command; reports say how long it took
  const OneCell& cell;
  SearchSetup setup;
  SearchContext search;
  ApiSession& api;  // without the matrix's sources: the search adds them
};

struct BisectOptions {
  std::string good;  // revision, as AxisEnds; empty: not named
  std::string bad;
  std::string since;    // YYYY-MM-DD: go back no further; empty: no limit
  bool ladder = false;  // find the older end among the releases, not by days
  bool flaky = false;
  std::optional<double> flake_rate;  // absent: measured at the good end
  double confidence = 0.99;          // of a flaky search

  bool names_an_end() const { return !good.empty() || !bad.empty(); }
};

// The bad end first. Where only one end is named, the other is the cell's own revision.
AxisEnds EndsOf(const BisectOptions& options, AxisKind axis, const PlannedCell& cell);

struct BisectAnswer {
  bool found = false;
  OrderedJson json;     // bisect.json or peel.json
  std::string summary;  // for people
};

// Finds the commit that changed the cell and confirms it. Absent: the user interrupted.
absl::StatusOr<std::optional<BisectAnswer>> BisectCell(HistorySearchContext context,
                                                       const BisectOptions& options,
                                                       const Criterion& criterion);

struct PeelOptions {
  int most_culprits = 20;
  int most_trials = 64;  // commits to try for one culprit
};

// Finds every culprit of the newest pair, one behind the other. `found`: the pair works without
// them. Absent: the user interrupted.
absl::StatusOr<std::optional<BisectAnswer>> PeelCell(HistorySearchContext context,
                                                     const PeelOptions& options);

}  // namespace bkm

#endif  // HARNESS_HISTORY_BISECT_SESSION_H_
