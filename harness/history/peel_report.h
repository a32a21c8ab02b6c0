// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_HISTORY_PEEL_REPORT_H_
#define HARNESS_HISTORY_PEEL_REPORT_H_

#include <string>

#include "harness/base/json.h"
#include "harness/search/history_axis.h"
#include "harness/search/peel.h"

namespace bkm {

// All that is broken in a pair, and what it took to tell.
struct PeelReport {
  const HistoryAxis& axis;
  const PeelResult& result;
  std::string cell;  // id of the newest pair
  int measured = 0;  // cells
  double seconds = 0;
};

// peel.json: harness/history/peel.schema.json.
OrderedJson ToJson(const PeelReport& report);
// For people.
std::string ToSummary(const PeelReport& report);

}  // namespace bkm

#endif  // HARNESS_HISTORY_PEEL_REPORT_H_
