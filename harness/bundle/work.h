// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BUNDLE_WORK_H_
#define HARNESS_BUNDLE_WORK_H_

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "harness/bundle/manifest.h"
#include "harness/model/sandbox_level.h"
#include "harness/runner/installation.h"
#include "harness/runner/measured_on.h"
#include "harness/runner/observer.h"
#include "harness/session/interrupt.h"

namespace bkm {

struct WorkOptions {
  std::filesystem::path bundle;
  std::filesystem::path out;     // the file of results
  std::filesystem::path python;  // the user's interpreter; empty: the packed locks
  int jobs = 0;                  // cells in flight; 0: one per core
  SandboxLevel sandbox = SandboxLevel::kFull;
};

struct WorkSummary {
  int cells = 0;     // of the bundle
  int known = 0;     // had a result before
  int ran = 0;       // have one now
  int controls = 0;  // of `ran`
  SkippedCells skipped;
  WorkMachine machine;
  std::string other_code;  // the packing machine's cell code, if it differs from this one's
  bool finished = false;   // false: the user interrupted
};

// Runs the cells of a bundle on this machine and adds each result to `out` as it comes. A cell that
// has a result there does not run again. An error: the bundle or the results cannot be read or
// written; what was added stays.
absl::StatusOr<WorkSummary> Work(const Installation& installation, const WorkOptions& options,
                                 RunObserver& observer, const InterruptSignals& signals);

}  // namespace bkm

#endif  // HARNESS_BUNDLE_WORK_H_
