// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/report/find_cell.h"

#include <filesystem>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

std::string FolderName(const CellRecord& cell) {
  return std::filesystem::path(cell.dir).filename().string();
}

}  // namespace

absl::StatusOr<const CellRecord*> FindCell(const RunRecord& run, const std::string& name) {
  const std::string folder =
      std::filesystem::path(absl::EndsWith(name, "/") ? name.substr(0, name.size() - 1) : name)
          .filename()
          .string();
  const absl::StatusOr<CellFilter> filter = CellFilter::Parse(name);
  std::vector<const CellRecord*> matches;
  for (const CellRecord& cell : run.cells) {
    if (cell.id == name) return &cell;
    if (absl::StartsWith(FolderName(cell), folder) || (filter.ok() && filter->Matches(cell.cell)))
      matches.push_back(&cell);
  }
  if (matches.size() == 1) return matches[0];
  if (matches.empty()) {
    if (absl::StrContains(name, "=") && !filter.ok()) return filter.status();
    return absl::NotFoundError(
        absl::StrCat("no cell of this run is called '", name,
                     "': give an id from run.json, a folder's name below cells/, or a filter"));
  }
  std::string message = absl::StrCat("'", name, "' means ", matches.size(), " cells; say more:");
  for (size_t i = 0; i < matches.size() && i < 10; ++i)
    absl::StrAppend(&message, "\n  ", FolderName(*matches[i]), "  ", CellLabel(*matches[i]));
  return absl::InvalidArgumentError(message);
}

}  // namespace bkm
