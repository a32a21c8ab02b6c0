// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_CELL_REQUEST_H_
#define HARNESS_CELL_CELL_REQUEST_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/json.h"

namespace bkm {

// What a cell may use. Zero: unlimited.
struct RequestedLimits {
  double timeout_s = 0;
  int64_t memory_mib = 0;  // beyond what it shares with the preloaded worker
  int64_t output_mib = 0;  // stdout, stderr and the files in work/
  int64_t processes = 0;
};

// The part of a "run" request that the worker itself needs; the adapter gets `all`, the whole
// request. harness/protocol/README.md says what it holds.
struct CellRequest {
  std::string cell;
  std::filesystem::path dir;  // absolute
  RequestedLimits limits;
  bool on_cpu = true;  // no GPU driver, which reserves memory that it never touches, takes part
  // Paths outside `dir` that the cell reads: kept in sight when /tmp is covered.
  std::vector<std::filesystem::path> reads;
  Json all;
};

// Checks the fields above; what else the request says is between the runner and the adapter.
absl::StatusOr<CellRequest> ParseCellRequest(const Json& json);

}  // namespace bkm

#endif  // HARNESS_CELL_CELL_REQUEST_H_
