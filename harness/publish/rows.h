// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_ROWS_H_
#define HARNESS_PUBLISH_ROWS_H_

#include <string>
#include <vector>

#include "harness/publish/evidence.h"
#include "harness/publish/published_table.h"

namespace bkm {

// Days after which evidence is too old, unless the user says otherwise.
inline constexpr int kMaxAgeDays = 90;

// The rows that merged evidence gives: one for each engine version, library version, runtime,
// torch, lock and device. A row expires `max_age_days` after its oldest evidence. Ids, Python's
// version, locks and how to install are filled in later.
std::vector<PublishedRow> RowsOf(const MergedEvidence& merged, int max_age_days);

// Puts rows into the table's order and gives each its id. An id stays while versions, runtime and
// device stay what they are called; of several rows of one name the newest keeps it.
void SortAndName(std::vector<PublishedRow>& rows);

// YYYY-MM-DD, some days later; empty for what is no date.
std::string DaysAfter(const std::string& date, int days);
// YYYY-MM-DD, in UTC.
std::string Today();

// A label as it is, and a commit id as nine digits of it.
std::string ShortLabel(const PublishedVersion& version);

// "0.2.2 to 0.3.0 (3 versions)", or the one version: a row's library for people.
std::string LibraryText(const PublishedRow& row);
// "v0.8.0 (7aed6b230, 2026-06-01)".
std::string VersionText(const PublishedVersion& version);

// The cells of a row that was joined from several versions, each probe once: of the newest version.
std::vector<const PublishedCell*> NewestCells(const PublishedRow& row);

// "ok", "flaky: wrong", "unknown" for what says nothing: a cell's verdict in the table.
std::string CellText(const PublishedCell& cell);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_ROWS_H_
