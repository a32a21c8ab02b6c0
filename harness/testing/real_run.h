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

// A run of real subjects by the real bkm of this checkout, with the user's own cache, mirrors and
// registry; and its cells, by name.
class RealRun {
 public:
  // Some fields of run.json's cells: {{"library_label", "0.2.1"}, {"attention", "flex"}}.
  using Fields = std::map<std::string, std::string>;

  // `bkm run ARGUMENTS` into a new run directory `name`. Unavailable, with what bkm said, when it
  // could not do its job: no network, no registry.
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

// Folder of the mirror NAME.git; empty when this machine has none ($BKM_GIT_MIRRORS).
std::filesystem::path MirrorOf(const std::string& name);

// Why `status` is no failure of the code under test: the network or the registry is missing. Empty
// when it is one.
std::string ReasonToSkip(const absl::Status& status);

}  // namespace bkm

#endif  // HARNESS_TESTING_REAL_RUN_H_
