// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REPORT_TABLE_H_
#define HARNESS_REPORT_TABLE_H_

#include <string>

#include "harness/model/cell_record.h"

namespace bkm {

// table.md: one section per engine kind; one row per engine version, library version, runtime,
// torch and model, one column per attention. Each red verdict has a number, and below the table
// stands the reason in words.
std::string TableMarkdown(const RunRecord& run);

}  // namespace bkm

#endif  // HARNESS_REPORT_TABLE_H_
