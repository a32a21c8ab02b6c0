// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_OLDER_ROWS_H_
#define HARNESS_PUBLISH_OLDER_ROWS_H_

#include <filesystem>
#include <vector>

#include "harness/publish/published_table.h"

namespace bkm {

// `rows` of new evidence together with those of an older table, one library version each. A cell of
// both has its newer measurement; the other is kept beside it if it says otherwise. Nothing is read
// from the older table's runs, which need not be here. Evidence of the older table names its runs
// relative to `folder`, the new table's. The lock of an older row is known for the newest version
// of its range only; rows of the others have none.
std::vector<PublishedRow> WithOlderRows(std::vector<PublishedRow> rows, const TableOnDisk& older,
                                        const std::filesystem::path& folder, int max_age_days);

// The runs of an older table, relative to `folder`.
std::vector<PublishedRun> RunsOf(const TableOnDisk& older, const std::filesystem::path& folder);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_OLDER_ROWS_H_
