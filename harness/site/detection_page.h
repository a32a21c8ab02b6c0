// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_DETECTION_PAGE_H_
#define HARNESS_SITE_DETECTION_PAGE_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/selftest/catalogue.h"
#include "harness/selftest/mutation_report.h"
#include "harness/site/page.h"

namespace bkm {

// The outcome of a planted fault in one kind of cell.
struct ShownDetection {
  std::string fault;   // empty: no fault
  std::string column;  // engine, attention and, if there are several, model
  std::string verdict;
  std::string stage;
  std::string reason;
  std::string check;
  std::optional<double> floors;
  std::string outcome;  // from `bkm selftest --json`; golden tables lack it
};

// Reads the output of `bkm selftest --json`, or a file of golden/detection.
absl::StatusOr<std::vector<ShownDetection>> ReadDetections(const std::filesystem::path& path);

// How good the checks are: a row per fault, a column per kind of cell; then the mutations of the
// subjects' sources. `catalogue` describes the faults; null: only their names are shown.
Page DetectionPage(const std::vector<ShownDetection>& detections, const Catalogue* catalogue,
                   const std::vector<MutatedPair>& mutated);

}  // namespace bkm

#endif  // HARNESS_SITE_DETECTION_PAGE_H_
