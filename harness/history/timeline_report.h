// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_HISTORY_TIMELINE_REPORT_H_
#define HARNESS_HISTORY_TIMELINE_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/json.h"
#include "harness/history/report_fields.h"
#include "harness/search/history_axis.h"
#include "harness/search/timeline.h"

namespace bkm {

struct TimelineCommit : NamedCommit {
  bool merge = false;  // the culprit may be a commit of the merged branch
};

// The later side of a boundary, seen from the earlier one. Written to timeline.json: never rename.
enum class Change { kBroke, kMended, kDifferentlyBad };
const char* Name(Change change);

// Neighbouring measured commits with one signature.
struct ReportedStretch {
  std::string signature;
  Verdict verdict;  // of the first commit
  TimelineCommit first, last;
  int commits = 0;   // from first to last
  int measured = 0;  // of these
  bool good() const { return verdict.kind == VerdictKind::kOk; }
};

// The commits at which one stretch ends and the next begins.
struct ReportedBoundary {
  Change change = Change::kBroke;
  TimelineCommit before;                   // the last commit of the earlier stretch
  std::optional<TimelineCommit> culprit;   // absent: one of the candidates
  std::vector<TimelineCommit> candidates;  // oldest first; the last one begins the later stretch
  bool same_runtime = true;                // both sides ran in one runtime
  std::optional<bool> confirmed;           // absent: not measured once more
};

// Every boundary of a history: timeline.json, described in timeline.schema.json.
struct TimelineReport {
  AxisKind axis = AxisKind::kLibrary;
  std::string cell;                          // id of the cell at the newer end
  std::vector<ReportedStretch> stretches;    // oldest first
  std::vector<ReportedBoundary> boundaries;  // one fewer, in order
  // The most commits that can differ unseen between measured ones that are alike.
  int resolution = 0;
  SearchEffort effort;
};

TimelineReport MakeTimelineReport(const HistoryAxis& axis, const Timeline& timeline,
                                  const SearchEffort& effort);

void Describe(Fields& fields, TimelineReport& report);
OrderedJson ToJson(const TimelineReport& report);
absl::StatusOr<TimelineReport> TimelineReportFromJson(const Json& json, const std::string& origin);
// The text on the console: a line per stretch, oldest first, and the commits between them.
std::string ToSummary(const TimelineReport& report);

}  // namespace bkm

#endif  // HARNESS_HISTORY_TIMELINE_REPORT_H_
