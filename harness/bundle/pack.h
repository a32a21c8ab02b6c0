// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BUNDLE_PACK_H_
#define HARNESS_BUNDLE_PACK_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/json.h"
#include "harness/matrix/matrix.h"
#include "harness/matrix/plan.h"
#include "harness/runner/installation.h"
#include "harness/runner/preparation.h"
#include "harness/runner/run_directory.h"
#include "harness/runner/task.h"

namespace bkm {

struct PackSummary {
  std::string bundle;  // its name: the SHA-256 of its manifest
  int cells = 0;
  int stopped = 0;  // of `cells`: those that must not run, whose result is known
  int64_t parts = 0;
  int64_t bytes = 0;       // of the parts
  int64_t file_bytes = 0;  // of the file
};

// The subjects of a run that match the filters, in its order, as they were planned. Repeats and
// controls are left out: a machine that runs the cells adds the controls that it needs.
absl::StatusOr<std::vector<PlannedCell>> PlanOfRun(const RunDirectory& directory,
                                                   const std::vector<CellFilter>& filters);

// Prepares these cells of a run, each in the lock that it has there. Stops early once `stop` is
// true. `preparation` makes no environments.
absl::StatusOr<std::vector<PreparedCell>> PrepareRun(const RunDirectory& directory,
                                                     const std::vector<PlannedCell>& plan,
                                                     Preparation& preparation,
                                                     const std::function<bool()>& stop);

// Writes prepared cells of `matrix` as a bundle, and notes that this machine packed it.
absl::StatusOr<PackSummary> Pack(const Installation& installation, const Matrix& matrix,
                                 const std::vector<PreparedCell>& cells,
                                 const std::filesystem::path& out);

}  // namespace bkm

#endif  // HARNESS_BUNDLE_PACK_H_
