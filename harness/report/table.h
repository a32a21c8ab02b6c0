// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REPORT_TABLE_H_
#define HARNESS_REPORT_TABLE_H_

#include <string>

#include "harness/model/cell_record.h"

namespace bkm {

// table.md: one section per engine kind, one row per engine version, library version, runtime,
// torch, model and precision, one column per attention. A number refers each failure to the list of
// reasons below.
std::string TableMarkdown(const RunRecord& run);

}  // namespace bkm

#endif  // HARNESS_REPORT_TABLE_H_
