// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/site/site_table.h"

#include "harness/base/status_macros.h"
#include "harness/publish/evidence.h"
#include "harness/publish/row_lock.h"
#include "harness/publish/rows.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxAgeDays = 90;  // as bkm publish

}  // namespace

absl::StatusOr<SiteTable> ReadSiteTable(const fs::path& path, const std::string& today) {
  std::error_code error;
  const fs::path file = fs::is_directory(path, error) ? path / "table.json" : path;
  ASSIGN_OR_RETURN(const Json json, ReadJsonFile(file));
  SiteTable table{.folder = fs::absolute(file).parent_path(), .today = today};
  ASSIGN_OR_RETURN(table.table, PublishedTableFromJson(json, file.string()));
  return table;
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
    if (row.status == RowStatus::kWorks || row.status == RowStatus::kWorksExcept)
      row.install = InstallLines(row, catalog);
  }
  return table;
}

std::string PageOfEvidence(const Evidence& evidence, const SiteTable& table, const SiteRuns& runs) {
  return runs.PageOf(table.folder / evidence.run, evidence.dir);
}

}  // namespace bkm
