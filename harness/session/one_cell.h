// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SESSION_ONE_CELL_H_
#define HARNESS_SESSION_ONE_CELL_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/matrix/matrix.h"
#include "harness/matrix/plan.h"
#include "harness/model/cell.h"
#include "harness/runner/installation.h"
#include "harness/runner/preparation.h"

namespace bkm {

// The one cell that a command is about, and what preparing it needs.
struct OneCell {
  Installation installation;
  Matrix matrix;
  std::unique_ptr<Preparation> preparation;
  PlannedCell planned;

  // `observer` must outlive it.
  static absl::StatusOr<OneCell> Load(const Matrix& matrix, const std::vector<CellFilter>& filters,
                                      const PreparationOptions& options, RunObserver& observer);
};

}  // namespace bkm

#endif  // HARNESS_SESSION_ONE_CELL_H_
