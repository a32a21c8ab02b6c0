// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MATRIX_PLAN_H_
#define HARNESS_MATRIX_PLAN_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/matrix/matrix.h"
#include "harness/model/cell.h"
#include "harness/model/subject.h"

namespace bkm {

// One cell of a matrix, in or out of the run, and why.
struct PlannedCell {
  Cell cell;
  std::string id;
  bool included = true;
  std::string why;  // empty for a cell that is in
  // Why this device cannot run a cell that is in: its verdict is `unsupported`, and nothing is run.
  std::string unsupported;
  // Why, by the sources alone, importing the engine of a cell that is in must fail: its verdict is
  // `skipped`, and nothing is run. Only where the user asked for the static check.
  std::string statically_red = {};
};

// What the expansion must know of the world. Each is asked once per distinct argument.
struct PlanEnvironment {
  // The exact version, commit or folder behind a spec (and the user's label for it).
  std::function<absl::StatusOr<Subject>(const SubjectSpec&)> resolve;
  // The torch version that a runtime policy has unless told; an error for a policy that does not
  // exist.
  std::function<absl::StatusOr<std::string>(const std::string& runtime)> torch_of_runtime;
};

// Every cell of the matrix in the order of the file, each id once. A cell that matches none of
// `filters` is out (no filters: all match), as are cells that this build cannot run (device, ranks)
// or whose probe does not apply to the engine kind; each has its reason. An exclusion that matches
// no cell, or a filter with a value that no cell has, is an error.
absl::StatusOr<std::vector<PlannedCell>> ExpandMatrix(const Matrix& matrix,
                                                      const std::vector<CellFilter>& filters,
                                                      const PlanEnvironment& environment);

}  // namespace bkm

#endif  // HARNESS_MATRIX_PLAN_H_
