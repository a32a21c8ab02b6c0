// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_TORTURE_TORTURE_H_
#define HARNESS_TORTURE_TORTURE_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/json.h"

namespace bkm {

struct TortureOptions {
  std::filesystem::path bkm;         // the program
  std::filesystem::path root, bin;   // $BKM_ROOT and $BKM_BIN for it
  std::filesystem::path folder;      // an empty folder to work in
  std::filesystem::path matrix;      // what runs; empty: fake pairs, without registry and LibTorch
  std::filesystem::path uv;          // for a matrix
  double minutes = 1;                // ends after these
  int kills = 0;                     // or after so many kills; 0: no such end
  bool once_each = false;            // or when each kind of disturbance took place
  uint64_t seed = 1;                 // of every choice; moments still depend on the machine
  std::vector<std::string> options;  // further options of each `bkm run`
  std::function<void(const std::string&)> progress;
};

// What disturbed runs left, compared with an undisturbed one (README.md).
struct TortureResult {
  std::map<std::string, int> killed;     // processes by role
  std::map<std::string, int> disturbed;  // runs by kind of disturbance
  // The runs of these in which the disturbance was seen to take place: a process was killed, a
  // write failed, a file changed. Has every kind that is possible, also with 0.
  std::map<std::string, int> took_place;
  std::map<std::string, std::string> not_possible;  // kinds that this machine does not allow: why
  int rounds = 0;                                   // runs that were completed in the end
  int lost = 0;
  int repeated = 0;
  int wrong = 0;
  int left = 0;
  double seconds = 0;
  std::vector<std::string> troubles;  // one sentence for each of the counts above

  int kills() const;
  // The possible kinds that never took place.
  std::vector<std::string> missing() const;
  bool sound() const { return lost == 0 && repeated == 0 && wrong == 0 && left == 0; }
};

absl::StatusOr<TortureResult> Torture(const TortureOptions& options);

// "killed 100, lost 0, repeated 0, wrong 0" and details.
std::string TortureText(const TortureResult& result, uint64_t seed);
Json TortureJson(const TortureResult& result, uint64_t seed);

}  // namespace bkm

#endif  // HARNESS_TORTURE_TORTURE_H_
