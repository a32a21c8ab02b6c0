// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_HISTORY_BISECT_REPORT_H_
#define HARNESS_HISTORY_BISECT_REPORT_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/json.h"
#include "harness/history/report_fields.h"
#include "harness/runtime/runtime_lock.h"
#include "harness/search/history_axis.h"
#include "harness/search/investigation.h"

namespace bkm {

// What the culprit did to the cell. Written to bisect.json: never rename.
enum class Direction { kBroke, kMended };
const char* Name(Direction direction);

// A commit of the search, with its outcome where it was measured.
struct MeasuredCommit : NamedCommit {
  std::optional<Outcome> outcome;
};

// The runtimes on both sides of a culprit, where they differ.
struct RuntimeChange {
  struct Package {
    std::string name;
    std::string before, after;  // versions; empty: not installed
  };
  std::string before, after;  // keys of the locks
  std::vector<Package> changed;
};

// The rates and probabilities of a search by Bayes.
struct FlakyEstimate {
  struct Likely {
    std::string commit;
    double probability = 0;
  };
  double confidence = 0;
  double no_culprit = 0;
  double flake_rate = 0;
  double miss_rate = 0;
  int runs = 0;
  std::vector<Likely> likely;  // at most 10 commits, the likeliest first
};

// The result of a search for a culprit: bisect.json, described in bisect.schema.json.
struct BisectReport {
  SearchStatus status = SearchStatus::kNone;
  std::string why;  // one sentence where no culprit is named
  AxisKind axis = AxisKind::kLibrary;
  std::string cell;                    // id of the cell at the newer end
  std::string bad_means;               // Criterion::Text()
  std::optional<Direction> direction;  // absent: the ends do not differ
  std::optional<MeasuredCommit> older_end, newer_end;
  std::optional<MeasuredCommit> culprit;
  std::vector<MeasuredCommit> parents;     // of the culprit
  std::vector<MeasuredCommit> candidates;  // oldest first
  std::optional<MadeBy> made_by;           // absent: nothing was found
  std::optional<RuntimeChange> runtime;
  std::optional<double> confidence;  // that the culprit is the culprit
  std::optional<FlakyEstimate> flaky;
  SearchEffort effort;
};

// The lock with a key, or null.
using FindLock = std::function<const RuntimeLock*(const std::string& key)>;

// The report of a finished investigation. `find_lock` knows the locks in which its cells ran.
BisectReport MakeBisectReport(const HistoryAxis& axis, const Investigation& investigation,
                              const Criterion& criterion, const FindLock& find_lock,
                              const SearchEffort& effort);

void Describe(Fields& fields, BisectReport& report);
OrderedJson ToJson(const BisectReport& report);
absl::StatusOr<BisectReport> BisectReportFromJson(const Json& json, const std::string& origin);
// The text on the console.
std::string ToSummary(const BisectReport& report);

}  // namespace bkm

#endif  // HARNESS_HISTORY_BISECT_REPORT_H_
