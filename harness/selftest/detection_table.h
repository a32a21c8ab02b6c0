// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SELFTEST_DETECTION_TABLE_H_
#define HARNESS_SELFTEST_DETECTION_TABLE_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/json.h"
#include "harness/selftest/detection.h"
#include "harness/selftest/selftest_plan.h"

namespace bkm {

// For people: a line per cell, what is not as expected at the end with its message, and a summary.
std::string DetectionText(const std::vector<Detection>& detections,
                          const std::vector<SkippedFault>& invisible);
OrderedJson DetectionJson(const std::vector<Detection>& detections,
                          const std::vector<SkippedFault>& invisible);

// A row of golden/detection: what caught a fault, by the kind of engine and not by its version, and
// the margin as the lower end of its band (bands are factors of 4, from kLeastMargin on).
struct GoldenDetection {
  std::string fault;
  std::string engine;
  std::string attention;
  std::string model;
  std::string verdict;
  std::string stage;
  std::string reason;
  std::string check;
  std::optional<double> margin;
  bool operator==(const GoldenDetection&) const = default;
};

absl::StatusOr<std::vector<GoldenDetection>> GoldenDetectionsFromJson(const Json& json,
                                                                      const std::string& origin);
// None where the file does not exist.
absl::StatusOr<std::vector<GoldenDetection>> ReadGoldenDetections(
    const std::filesystem::path& file);
OrderedJson ToJson(const std::vector<GoldenDetection>& golden);

// The golden rows that these detections would give. Where a margin lies less than half a band
// outside of the band that `before` has, that band stays: noise must not move it.
std::vector<GoldenDetection> GoldenOf(const std::vector<Detection>& detections,
                                      const std::vector<GoldenDetection>& before);

// `before` with the rows of `now` in the place of those that they stand for.
std::vector<GoldenDetection> Merged(const std::vector<GoldenDetection>& before,
                                    const std::vector<GoldenDetection>& now);

// What differs from the golden, one sentence each. One golden row may stand for several cells: a
// pair without a fault runs once for each probe that the faults need. `whole`: every cell was run,
// so that a golden row without one is a difference, too.
std::vector<std::string> DifferencesFrom(const std::vector<GoldenDetection>& golden,
                                         const std::vector<Detection>& detections, bool whole);

}  // namespace bkm

#endif  // HARNESS_SELFTEST_DETECTION_TABLE_H_
