// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_TABLE_CSV_H_
#define HARNESS_PUBLISH_TABLE_CSV_H_

#include <string>

#include "harness/publish/published_table.h"

namespace bkm {

// A header line and one line per cell, for spreadsheets. New columns are only added at the end.
std::string TableCsv(const PublishedTable& table);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_TABLE_CSV_H_
