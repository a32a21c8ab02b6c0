// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_ROWS_H_
#define HARNESS_PUBLISH_ROWS_H_

#include <string>
#include <vector>

#include "harness/publish/evidence.h"
#include "harness/publish/published_table.h"

namespace bkm {

// The default age in days at which evidence expires.
inline constexpr int kMaxAgeDays = 90;

// One row for each engine version, library version, runtime, torch, lock and device of the
// evidence. A row expires `max_age_days` after its oldest evidence. Its id, Python version, lock
// and install commands are filled in later.
std::vector<PublishedRow> RowsOf(const MergedEvidence& merged, int max_age_days);

// What the row's cells say together.
RowStatus StatusOf(const PublishedRow& row);

// " (sandbox: weak)" for a row whose cells were not all measured in the full sandbox; "" otherwise,
// and for a row of an older version, which recorded no level.
std::string SandboxNote(const PublishedRow& row);

// Sorts rows and gives each its id. An id depends only on the labels of versions, runtime and
// device. If several rows have the same id, the newest keeps it.
void SortAndName(std::vector<PublishedRow>& rows);

// The YYYY-MM-DD that is some days later; empty for an invalid date.
std::string DaysAfter(const std::string& date, int days);
// Today, YYYY-MM-DD in UTC.
std::string Today();

// The label; of a commit id the first nine digits.
std::string ShortLabel(const PublishedVersion& version);

// A row's library for people: one version, or "0.2.2 to 0.3.0 (3 versions)".
std::string LibraryText(const PublishedRow& row);
// "v0.8.0 (7aed6b230, 2026-06-01)".
std::string VersionText(const PublishedVersion& version);

// The cells of the newest library version that has each probe.
std::vector<const PublishedCell*> NewestCells(const PublishedRow& row);

// A cell's verdict in the table: "ok", "flaky: wrong", or "unknown (...)" if inconclusive.
std::string CellText(const PublishedCell& cell);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_ROWS_H_
