// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/bundle/pack.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/fields.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/bundle/packed_cells.h"
#include "harness/bundle/part_file.h"
#include "harness/bundle/unpack.h"
#include "harness/model/cell_record.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// What the planner said of a cell that no process was started for.
absl::Status AddReason(const RunDirectory& directory, const CellRecord& record,
                       PlannedCell& planned) {
  if (!record.lock.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::optional<Json> observation, directory.ReadObservation(record));
  if (!observation) return absl::OkStatus();
  const Json& ending = ObjectOf(*observation, "ending");
  const std::string kind = TextOf(ending, "kind");
  const std::string message = TextOf(ending, "message", kind);
  if (kind == "device-missing") planned.unsupported = message;
  if (kind == "not-offered") planned.not_offered = message;
  if (kind == "api-check") planned.statically_red = message;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Matrix> MatrixOfRun(const RunDirectory& directory) {
  ASSIGN_OR_RETURN(const RunRecord run, directory.ReadRun());
  Matrix matrix{.name = run.matrix};
  if (!run.made_by.is_object() || !run.made_by.contains("limits")) {
    return absl::FailedPreconditionError(absl::StrCat(
        directory.run_json().string(),
        " does not say the limits of its cells (an older bkm wrote it): pack the matrix instead"));
  }
  ASSIGN_OR_RETURN(matrix.limits,
                   ReadFields<CellLimits>(run.made_by["limits"], directory.run_json().string()));
  return matrix;
}

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
    if (!record.cell.plant.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the cell ", record.id, " has a planted fault, which is not packed"));
    }
    PlannedCell& planned = plan.emplace_back();
    planned.cell = record.cell;
    planned.id = record.id;
    RETURN_IF_ERROR(AddReason(directory, record, planned));
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
    const CellRecord& record = *records.at(planned.id);
    absl::StatusOr<PreparedCell> cell;
    if (record.lock.empty()) {
      cell = preparation.Prepare(planned);
    } else {
      ASSIGN_OR_RETURN(const RuntimeLock lock, directory.ReadLock(record.lock));
      cell = preparation.PrepareIn(planned, lock);
    }
    RETURN_IF_ERROR(cell.status());
    // The name of a folder's package, which is a part of it, is not in run.json.
    if (!record.inherited_from) cell->record.dir = record.dir;
    cells.push_back(*std::move(cell));
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
