// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_CELL_REQUEST_H_
#define HARNESS_CELL_CELL_REQUEST_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/json.h"

namespace bkm {

// The limits of a cell. Zero: unlimited. A request without `cpu_s` gets it from its time limit and
// the threads and ranks of its probe.
struct RequestedLimits {
  double timeout_s = 0;
  double cpu_s = 0;        // user and system time of all processes together
  int64_t memory_mib = 0;  // beyond the memory of the preloaded worker
  int64_t output_mib = 0;  // stdout, stderr and the files in work/
  int64_t processes = 0;
};

// The part of a "run" request that the worker itself needs. The adapter gets `all`, the whole
// request. harness/protocol/README.md describes its fields.
struct CellRequest {
  std::string cell;
  std::filesystem::path dir;  // absolute
  RequestedLimits limits;
  bool several_ranks = false;
  bool on_cpu = true;  // without a GPU driver, which reserves memory that it never touches
  std::vector<std::pair<std::string, std::filesystem::path>> trees;  // subject -> its tree
  std::filesystem::path probe_dir;                                   // empty: none
  std::vector<std::filesystem::path> reads;                          // all of these paths
  Json all;
};

// `limits`: the object of that name in a request.
absl::StatusOr<RequestedLimits> ParseLimits(const Json& limits);

// Checks the fields above only; the others are between the runner and the adapter.
absl::StatusOr<CellRequest> ParseCellRequest(const Json& json);

}  // namespace bkm

#endif  // HARNESS_CELL_CELL_REQUEST_H_
