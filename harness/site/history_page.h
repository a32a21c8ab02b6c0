// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_HISTORY_PAGE_H_
#define HARNESS_SITE_HISTORY_PAGE_H_

#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/history/bisect_report.h"
#include "harness/history/peel_report.h"
#include "harness/history/timeline_report.h"
#include "harness/model/cell_record.h"
#include "harness/site/page.h"
#include "harness/site/site_run.h"

namespace bkm {

// The result of bkm bisect, bkm bisect --peel or bkm timeline, and the run with its trials.
struct HistoryLog {
  std::variant<BisectReport, TimelineReport, PeelReport> report;
  std::optional<RunRecord> run;
};

// `path`: bisect.json, timeline.json, peel.json, or a run directory with one of them.
absl::StatusOr<HistoryLog> ReadHistoryLog(const std::filesystem::path& path);

// A section per log: the result first, then how it was found.
Page HistoryPage(const std::vector<HistoryLog>& logs, const SiteRuns& runs);

// The web address of a commit of a source on GitHub; empty for other sources.
std::string CommitAddress(const std::string& source, const std::string& commit);

}  // namespace bkm

#endif  // HARNESS_SITE_HISTORY_PAGE_H_
