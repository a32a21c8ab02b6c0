// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_TESTING_REAL_RUN_H_
#define HARNESS_TESTING_REAL_RUN_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/json.h"

namespace bkm {

// The cells of a run of the real bkm, by name.
class RealRun {
 public:
  // Some fields of run.json's cells, or of their probes: {{"library_label", "0.2.1"}, {"head",
  // "lm"}}.
  using Fields = std::map<std::string, std::string>;

  // RunRealCells, and what it came to.
  static absl::StatusOr<RealRun> Make(std::vector<std::string> arguments, const std::string& name);

  // The one subject cell with these fields; an object that says so when there is none or several.
  Json Cell(const Fields& fields) const;
  // "ok at golden", "broken at forward".
  std::string VerdictOf(const Fields& fields) const;
  // With the reason: "broken at forward, unexpected-keyword".
  std::string ReasonOf(const Fields& fields) const;
  // A file of that cell's folder; null when there is none.
  Json FileOf(const Fields& fields, const std::string& file) const;

 private:
  RealRun(std::filesystem::path folder, Json run)
      : folder_(std::move(folder)), run_(std::move(run)) {}

  std::filesystem::path folder_;
  Json run_;
};

}  // namespace bkm

#endif  // HARNESS_TESTING_REAL_RUN_H_
