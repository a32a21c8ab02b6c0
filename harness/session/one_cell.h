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

// The cell that a command searches for, and what is needed to prepare it.
struct OneCell {
  Installation installation;
  Matrix matrix;
  std::unique_ptr<Preparation> preparation;
  PlannedCell planned;

  // InvalidArgument unless exactly one cell of the matrix matches. `observer` must outlive the
  // result.
  static absl::StatusOr<OneCell> Load(const Matrix& matrix, const std::vector<CellFilter>& filters,
                                      const PreparationOptions& options, RunObserver& observer);
};

}  // namespace bkm

#endif  // HARNESS_SESSION_ONE_CELL_H_
