// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_CONFINE_H_
#define HARNESS_CELL_CONFINE_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/model/sandbox_level.h"

namespace bkm {

struct ConfineOptions {
  SandboxLevel level = SandboxLevel::kFull;
  std::vector<std::filesystem::path> reads;   // beside the machine's programs and libraries
  std::vector<std::filesystem::path> writes;  // run by root: they change their owner
  std::map<std::string, std::string> environment;
  double timeout_s = 0;    // 0: none
  int64_t memory_mib = 0;  // of each process; 0: unlimited
  std::vector<std::string> command;
};

// Runs any program in the sandbox of cells, without network, in the first of `writes`. Returns its
// exit status: 124 after the timeout, 128 + N after signal N.
absl::StatusOr<int> Confine(const ConfineOptions& options);

}  // namespace bkm

#endif  // HARNESS_CELL_CONFINE_H_
