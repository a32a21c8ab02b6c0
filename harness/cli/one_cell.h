// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CLI_ONE_CELL_H_
#define HARNESS_CLI_ONE_CELL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "harness/cli/selection.h"
#include "harness/matrix/plan.h"
#include "harness/runner/installation.h"
#include "harness/runner/preparation.h"

namespace bkm {

// For commands that are about one cell: what the flags of bkm run name must be exactly one.
struct OneCell {
  Installation installation;
  Matrix matrix;
  std::unique_ptr<Preparation> preparation;
  PlannedCell planned;

  // `observer` must outlive it.
  static absl::StatusOr<OneCell> Load(const Selection& selection, RunObserver& observer);
};

}  // namespace bkm

#endif  // HARNESS_CLI_ONE_CELL_H_
