// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_HISTORY_TIMELINE_REPORT_H_
#define HARNESS_HISTORY_TIMELINE_REPORT_H_

#include <string>

#include "harness/base/json.h"
#include "harness/history/search_session.h"
#include "harness/search/timeline.h"

namespace bkm {

// Every boundary of a history, and what it took to find them.
struct TimelineReport {
  const HistoryAxis& axis;
  const Timeline& timeline;
  const SearchSession& session;
  std::string cell;  // id of the cell at the newer end
  double seconds = 0;
};

// timeline.json: harness/history/timeline.schema.json.
OrderedJson ToJson(const TimelineReport& report);
// For people: a line per stretch, oldest first, and between them the commits that made them.
std::string ToSummary(const TimelineReport& report);

}  // namespace bkm

#endif  // HARNESS_HISTORY_TIMELINE_REPORT_H_
