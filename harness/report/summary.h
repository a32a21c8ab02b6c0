// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REPORT_SUMMARY_H_
#define HARNESS_REPORT_SUMMARY_H_

#include <string>

#include "harness/model/cell_record.h"

namespace bkm {

// The summary of a run for a terminal: counts, the cells that work, and the other cells grouped by
// cause, the most frequent cause first.
std::string SummaryText(const RunRecord& run);

}  // namespace bkm

#endif  // HARNESS_REPORT_SUMMARY_H_
