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
#include "harness/model/cuda_device.h"
#include "harness/model/subject.h"

namespace bkm {

// `why` of a cell that is out because of the filters alone.
inline constexpr char kNotMatched[] = "not matched by --filter";

// One cell of a matrix: in the run, or out of it for a reason.
struct PlannedCell {
  Cell cell;
  std::string id;
  bool included = true;
  std::string why;  // empty for a cell that is in
  // Why this device cannot run the cell; empty if it can. The cell's verdict is then `unsupported`,
  // and no process is started.
  std::string unsupported;
  // Why the engine kind has no such layout; empty if it has. As above.
  std::string not_offered = {};
  // What the planner chose by itself, and why; empty if nothing.
  std::string note = {};
  // Why importing the engine must fail, found by the static check of the sources; empty without
  // that check. The cell's verdict is then `skipped`, and no process is started.
  std::string statically_red = {};
  // Known to be unsupported before any process is started, and why.
  bool is_stopped() const { return !WhyStopped().empty(); }
  const std::string& WhyStopped() const { return not_offered.empty() ? unsupported : not_offered; }
};

// Lookups of the expansion. Each is called once per distinct argument.
struct PlanEnvironment {
  // Resolves a spec to an exact version, commit or folder.
  std::function<absl::StatusOr<Subject>(const SubjectSpec&)> resolve;
  // The default torch version of a runtime policy; an error for an unknown policy.
  std::function<absl::StatusOr<std::string>(const std::string& runtime)> torch_of_runtime;
  // `runtime` if the packages of its policy's base include `package`, or if its packages are not
  // chosen by the policy; else the first policy by name that is like it and includes the package;
  // else empty. Null: nothing is known of runtimes, and cells say what they lack.
  std::function<absl::StatusOr<std::string>(const std::string& runtime, const std::string& package)>
      runtime_with = nullptr;
  // The CUDA devices of the machine that runs the cells; null where that is another one, which
  // decides by itself what it cannot run. Called if a cell asks for such a device.
  std::function<absl::StatusOr<std::vector<CudaDevice>>()> devices = nullptr;
};

// Every cell of the matrix in the order of the file, each id once. A cell that matches none of
// `filters` is out (no filters: all match), as are cells whose probe does not apply to the engine
// kind; each has its reason. An exclusion that matches no cell, a filter with a value that no cell
// has, or a layout that does not fit a cell that is in is an error.
absl::StatusOr<std::vector<PlannedCell>> ExpandMatrix(const Matrix& matrix,
                                                      const std::vector<CellFilter>& filters,
                                                      const PlanEnvironment& environment);

}  // namespace bkm

#endif  // HARNESS_MATRIX_PLAN_H_
