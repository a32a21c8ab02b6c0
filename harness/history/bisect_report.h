// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_HISTORY_BISECT_REPORT_H_
#define HARNESS_HISTORY_BISECT_REPORT_H_

#include <string>

#include "harness/base/json.h"
#include "harness/history/search_session.h"
#include "harness/search/investigation.h"

namespace bkm {

// What came of a search for a culprit, and what it took.
struct BisectReport {
  const HistoryAxis& axis;
  const Investigation& investigation;
  const SearchSession& session;
  const Criterion& criterion;
  std::string cell;  // id of the cell at the newer end
  double seconds = 0;
};

// bisect.json: harness/history/bisect.schema.json.
OrderedJson ToJson(const BisectReport& report);
// For people.
std::string ToSummary(const BisectReport& report);

}  // namespace bkm

#endif  // HARNESS_HISTORY_BISECT_REPORT_H_
