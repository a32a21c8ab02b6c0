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

namespace bkm {

// The table for people: a line per cell, then the messages of unexpected cells, why some faults are
// seen less well, and a summary.
std::string DetectionText(const std::vector<Detection>& detections);
OrderedJson DetectionJson(const std::vector<Detection>& detections);

// A row of golden/detection: what caught a fault, per kind of engine (not its version). The margin
// is the lower end of its band; bands are factors of 4, starting at kLeastMargin.
struct GoldenDetection {
  std::string fault;
  std::string engine;
  std::string attention;
  std::string model;
  std::string drive;
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

// The golden rows for these detections. A margin less than half a band outside its band in `before`
// keeps that band, so that noise does not move it.
std::vector<GoldenDetection> GoldenOf(const std::vector<Detection>& detections,
                                      const std::vector<GoldenDetection>& before);

// `before` with its rows replaced by those of `now` with the same key.
std::vector<GoldenDetection> Merged(const std::vector<GoldenDetection>& before,
                                    const std::vector<GoldenDetection>& now);

// The differences from the golden, one sentence each. A golden row may cover several cells: a pair
// without a fault runs once for each probe that the faults need. If every cell ran (`whole`), a
// golden row without a cell is a difference too.
std::vector<std::string> DifferencesFrom(const std::vector<GoldenDetection>& golden,
                                         const std::vector<Detection>& detections, bool whole);

}  // namespace bkm

#endif  // HARNESS_SELFTEST_DETECTION_TABLE_H_
