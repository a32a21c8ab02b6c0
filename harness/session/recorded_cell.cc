// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/session/recorded_cell.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "harness/base/fields.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"

namespace bkm {

absl::StatusOr<Matrix> MatrixOfRun(const RunDirectory& directory) {
  ASSIGN_OR_RETURN(const RunRecord run, directory.ReadRun());
  Matrix matrix{.name = run.matrix};
  if (!run.made_by.is_object() || !run.made_by.contains("limits")) {
    return absl::FailedPreconditionError(absl::StrCat(
        directory.run_json().string(),
        " does not say the limits of its cells (an older bkm wrote it): use the matrix "
        "instead"));
  }
  ASSIGN_OR_RETURN(matrix.limits,
                   ReadFields<CellLimits>(run.made_by["limits"], directory.run_json().string()));
  return matrix;
}

absl::StatusOr<PlannedCell> PlanAgain(const RunDirectory& directory, const CellRecord& record) {
  PlannedCell planned;
  planned.cell = record.cell;
  planned.id = record.id;
  if (!record.lock.empty()) return planned;
  ASSIGN_OR_RETURN(const std::optional<CellFacts> facts, directory.ReadObservation(record));
  if (!facts) return planned;
  const ObservedEnding& ending = facts->ending();
  if (ending.kind == EndingKind::kDeviceMissing) planned.unsupported = ending.told();
  if (ending.kind == EndingKind::kNotOffered) planned.not_offered = ending.told();
  if (ending.kind == EndingKind::kApiCheck) planned.statically_red = ending.told();
  return planned;
}

absl::StatusOr<PreparedCell> PrepareAgain(const RunDirectory& directory, const CellRecord& record,
                                          const PlannedCell& planned, Preparation& preparation) {
  absl::StatusOr<PreparedCell> cell;
  if (record.lock.empty()) {
    cell = preparation.Prepare(planned);
  } else {
    ASSIGN_OR_RETURN(const RuntimeLock lock, directory.ReadLock(record.lock));
    cell = preparation.PrepareIn(planned, lock);
  }
  RETURN_IF_ERROR(cell.status());
  cell->record.role = record.role;
  // The name of a folder's package, which is a part of it, is not in run.json.
  if (!record.inherited_from) cell->record.dir = record.dir;
  return cell;
}

}  // namespace bkm
