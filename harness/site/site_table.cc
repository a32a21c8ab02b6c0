// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/site/site_table.h"

#include "harness/base/status_macros.h"
#include "harness/publish/evidence.h"
#include "harness/publish/row_lock.h"
#include "harness/publish/rows.h"

namespace bkm {

namespace fs = std::filesystem;

absl::StatusOr<SiteTable> ReadSiteTable(const fs::path& path, const std::string& today) {
  ASSIGN_OR_RETURN(TableOnDisk found, ReadPublishedTable(path));
  return SiteTable{std::move(found.table), std::move(found.folder), today};
}

absl::StatusOr<SiteTable> TableOfRuns(const std::vector<fs::path>& runs, const std::string& today) {
  SiteTable table{.folder = fs::current_path(), .today = today};
  std::vector<RunEvidence> evidence;
  for (const fs::path& run : runs) {
    ASSIGN_OR_RETURN(evidence.emplace_back(),
                     ReadRunEvidence(run, table.folder, /*allow_partial=*/false));
    table.table.runs.push_back(evidence.back().published);
  }
  table.table.date = today;
  table.table.rows = RowsOf(Merge(evidence), kMaxAgeDays);
  SortAndName(table.table.rows);
  const SourceCatalog catalog;
  for (PublishedRow& row : table.table.rows) {
    if (Works(row)) row.install = InstallLines(row, catalog);
  }
  return table;
}

std::string PageOfEvidence(const Evidence& evidence, const SiteTable& table, const SiteRuns& runs) {
  return runs.PageOf(table.folder / evidence.run, evidence.dir);
}

}  // namespace bkm
