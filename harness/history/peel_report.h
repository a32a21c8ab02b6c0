// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_HISTORY_PEEL_REPORT_H_
#define HARNESS_HISTORY_PEEL_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/json.h"
#include "harness/history/report_fields.h"
#include "harness/search/history_axis.h"
#include "harness/search/peel.h"

namespace bkm {

// A run of the pair, and the engine's line that was running when it stopped.
struct PeelFailure {
  Verdict verdict;
  std::optional<std::string> engine_file;
  std::optional<int64_t> engine_line;
};

// One culprit of a broken pair, or one of several candidates for it.
struct ReportedCulprit {
  std::optional<NamedCommit> commit;    // absent: `why` says why none is named
  std::vector<NamedCommit> candidates;  // empty where the commit is named
  std::string why;
  std::optional<PeelFailure> failure;  // absent: no run came to it
  std::vector<Violation> breaks;       // by the sources
  std::optional<Removal> taken_out_by;
  std::optional<NamedCommit> taken_out_at;  // PeelStep::taken_out_at, and so on
  std::optional<NamedCommit> built_on_by;
  std::optional<NamedCommit> builds_on;
  std::optional<bool> library_runs;
  std::string note;
  // "by run", "builds on a culprit" or "static only".
  const char* confirmed() const;
};

// Everything that is broken in a pair: peel.json, described in peel.schema.json.
struct PeelReport {
  std::string cell;  // id of the newest pair
  NamedCommit newest;
  NamedCommit reached;  // where the pair stands in the end; empty in files of older versions
  bool works = false;
  std::string why;  // why peeling stopped; empty where the pair works
  PeelFailure last;
  std::vector<ReportedCulprit> culprits;
  int measured = 0;  // cells
  double seconds = 0;
};

PeelReport MakePeelReport(const HistoryAxis& axis, const PeelResult& result, std::string cell,
                          int measured, double seconds);

void Describe(Fields& fields, PeelReport& report);
OrderedJson ToJson(const PeelReport& report);
absl::StatusOr<PeelReport> PeelReportFromJson(const Json& json, const std::string& origin);
// The text on the console.
std::string ToSummary(const PeelReport& report);

}  // namespace bkm

#endif  // HARNESS_HISTORY_PEEL_REPORT_H_
