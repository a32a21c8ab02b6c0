// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/bundle/pack.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"
#include "harness/bundle/packed_cells.h"
#include "harness/bundle/part_file.h"
#include "harness/bundle/unpack.h"
#include "harness/model/cell_record.h"
#include "harness/model/plant.h"
#include "harness/session/recorded_cell.h"

namespace bkm {
namespace fs = std::filesystem;

absl::StatusOr<std::vector<PlannedCell>> PlanOfRun(const RunDirectory& directory,
                                                   const std::vector<CellFilter>& filters) {
  ASSIGN_OR_RETURN(const RunRecord run, directory.ReadRun());
  std::vector<const Cell*> all;
  std::vector<PlannedCell> plan;
  for (const CellRecord& record : run.cells) {
    if (record.role != CellRole::kSubject) continue;
    all.push_back(&record.cell);
    const bool matches = filters.empty() ||
                         std::any_of(filters.begin(), filters.end(), [&](const CellFilter& filter) {
                           return filter.Matches(record.cell);
                         });
    if (!matches) continue;
    if (std::any_of(record.cell.plant.begin(), record.cell.plant.end(), IsMutant)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the cell ", record.id, " has changed sources, which are not packed"));
    }
    ASSIGN_OR_RETURN(plan.emplace_back(), PlanAgain(directory, record));
  }
  for (const CellFilter& filter : filters) RETURN_IF_ERROR(filter.CheckValues(all));
  return plan;
}

absl::StatusOr<std::vector<PreparedCell>> PrepareRun(const RunDirectory& directory,
                                                     const std::vector<PlannedCell>& plan,
                                                     Preparation& preparation,
                                                     const std::function<bool()>& stop) {
  ASSIGN_OR_RETURN(const RunRecord run, directory.ReadRun());
  std::map<std::string, const CellRecord*> records;  // by id
  for (const CellRecord& record : run.cells) records[record.id] = &record;
  std::vector<PreparedCell> cells;
  for (const PlannedCell& planned : plan) {
    if (stop()) return cells;
    ASSIGN_OR_RETURN(cells.emplace_back(),
                     PrepareAgain(directory, *records.at(planned.id), planned, preparation));
  }
  return cells;
}

absl::StatusOr<PackSummary> Pack(const Installation& installation, const Matrix& matrix,
                                 const std::vector<PreparedCell>& cells, const fs::path& out) {
  ASSIGN_OR_RETURN(const std::string cell_code, installation.CellCodeDigest());
  PackSummary summary{.cells = static_cast<int>(cells.size())};
  for (const PreparedCell& cell : cells) summary.stopped += cell.stopped.has_value();
  ASSIGN_OR_RETURN(
      summary.bundle,
      WriteBundle(cells, {.matrix = matrix.name, .limits = matrix.limits, .cell_code = cell_code},
                  out));
  RETURN_IF_ERROR(RememberBundle(summary.bundle, matrix.name));
  ASSIGN_OR_RETURN(const PartFile file, PartFile::OpenForReading(out));
  ASSIGN_OR_RETURN(const auto size, file.Size());
  summary.parts = size.first;
  summary.bytes = size.second;
  std::error_code error;
  summary.file_bytes = static_cast<int64_t>(fs::file_size(out, error));
  return summary;
}

}  // namespace bkm
