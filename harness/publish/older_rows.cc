// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/older_rows.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "harness/publish/evidence.h"
#include "harness/publish/rows.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// Where a run that was named relative to `from` lies, relative to `to`.
std::string Moved(const std::string& run, const fs::path& from, const fs::path& to) {
  return (from / run).lexically_normal().lexically_relative(fs::absolute(to).lexically_normal());
}

// The row of one version of an older row's range.
PublishedRow OneVersion(const PublishedRow& row, const PublishedVersion& version) {
  PublishedRow one = row;
  one.library_from = one.library_to = version;
  one.library_versions = {version};
  std::erase_if(one.cells,
                [&](const PublishedCell& cell) { return cell.library != version.subject; });
  if (version != row.library_to) one.lock.clear();
  return one;
}

bool IsSameRow(const PublishedRow& a, const PublishedRow& b) {
  return a.engine == b.engine && a.engine_version.subject == b.engine_version.subject &&
         a.library_to.subject == b.library_to.subject && a.runtime == b.runtime &&
         a.torch == b.torch && a.device == b.device && a.relax == b.relax &&
         (a.lock == b.lock || a.lock.empty());
}

// What each row says of its cells.
void Summarize(PublishedRow& row, int max_age_days) {
  row.status = StatusOf(row);
  row.measured = row.cells.front().evidence.measured;
  for (const PublishedCell& cell : row.cells)
    row.measured = std::min(row.measured, cell.evidence.measured);
  row.expires = DaysAfter(row.measured, max_age_days);
  row.pylock.clear();
  row.install.clear();
}

}  // namespace

std::vector<PublishedRun> RunsOf(const TableOnDisk& older, const fs::path& folder) {
  std::vector<PublishedRun> runs = older.table.runs;
  for (PublishedRun& run : runs) run.dir = Moved(run.dir, older.folder, folder);
  return runs;
}

std::vector<PublishedRow> WithOlderRows(std::vector<PublishedRow> rows, const TableOnDisk& older,
                                        const fs::path& folder, int max_age_days) {
  std::map<std::string, PublishedCell*> found;  // new cells by id
  for (PublishedRow& row : rows) {
    for (PublishedCell& cell : row.cells) found[cell.id] = &cell;
  }
  const auto move = [&](Evidence& evidence) {
    evidence.run = Moved(evidence.run, older.folder, folder);
  };
  std::set<const PublishedCell*> lost;
  std::vector<PublishedRow> kept;
  for (const PublishedRow& range : older.table.rows) {
    for (const PublishedVersion& version : range.library_versions) {
      PublishedRow row = OneVersion(range, version);
      std::vector<PublishedCell> cells;
      for (PublishedCell& cell : row.cells) {
        move(cell.evidence);
        if (cell.control) move(*cell.control);
        for (Evidence& evidence : cell.contradicted_by) move(evidence);
        const auto newer = found.find(cell.id);
        if (newer == found.end()) {
          cells.push_back(std::move(cell));
        } else if (Replaces(newer->second->evidence, newer->second->evidence.measured,
                            cell.evidence, cell.evidence.measured)) {
          KeepOlder(std::move(cell), *newer->second);
        } else {
          KeepOlder(*newer->second, cell);
          lost.insert(newer->second);
          cells.push_back(std::move(cell));
        }
      }
      row.cells = std::move(cells);
      kept.push_back(std::move(row));
    }
  }
  for (PublishedRow& row : rows) {
    std::vector<PublishedCell> cells;
    for (PublishedCell& cell : row.cells) {
      if (!lost.contains(&cell)) cells.push_back(std::move(cell));
    }
    row.cells = std::move(cells);
  }
  for (PublishedRow& row : kept) {
    const auto same = std::find_if(
        rows.begin(), rows.end(), [&](const PublishedRow& other) { return IsSameRow(row, other); });
    if (same == rows.end()) {
      rows.push_back(std::move(row));
    } else {
      std::move(row.cells.begin(), row.cells.end(), std::back_inserter(same->cells));
    }
  }
  std::erase_if(rows, [](const PublishedRow& row) { return row.cells.empty(); });
  for (PublishedRow& row : rows) Summarize(row, max_age_days);
  return rows;
}

}  // namespace bkm
