// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BUNDLE_UNPACK_H_
#define HARNESS_BUNDLE_UNPACK_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/bundle/manifest.h"
#include "harness/model/cell_record.h"
#include "harness/runner/installation.h"
#include "harness/runner/measured_on.h"
#include "harness/runner/observer.h"
#include "harness/session/interrupt.h"

namespace bkm {

struct UnpackOptions {
  std::filesystem::path results;
  std::filesystem::path run;     // run directory; may be missing
  std::filesystem::path bundle;  // empty: a bundle that was packed on this machine
};

struct UnpackSummary {
  RunRecord run;
  int unpacked = 0;  // cells
  int known = 0;     // cells whose observation the run had already
  std::vector<MeasuredOn> measured_on;
  SkippedCells skipped;              // by the machine
  std::vector<std::string> missing;  // cells of the bundle without a result
  bool other_code = false;           // a machine ran other cell code than this bkm has
};

// Notes on this machine that it packed the bundle.
absl::Status RememberBundle(const std::string& bundle, const std::string& matrix);

// Checks the results of a bundle as a whole, puts the cells into the run directory and judges it.
// An error (DataLoss, InvalidArgument) names the part that is at fault, and leaves the run
// directory as it was.
absl::StatusOr<UnpackSummary> Unpack(const Installation& installation, const UnpackOptions& options,
                                     RunObserver& observer, const InterruptSignals& signals);

}  // namespace bkm

#endif  // HARNESS_BUNDLE_UNPACK_H_
