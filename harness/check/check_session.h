// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CHECK_CHECK_SESSION_H_
#define HARNESS_CHECK_CHECK_SESSION_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "harness/check/check_report.h"
#include "harness/runner/observer.h"

namespace bkm {

struct CheckOptions {
  std::string python;  // for FindNamedPython; empty: FindUsersPython()
  std::string table;   // table.json; empty: the one of this checkout, if any
  std::string model = "qwen3";
  std::string layout = "1";    // of the cells: "dp_shard=2"
  std::string device = "cpu";  // or "cuda"
  std::string precision;       // bf16 or fp32; empty: what each engine does by itself
  bool sources_only = false;   // run no cell
  std::string out;             // run directory; empty: a new one in the cache
  int jobs = 0;                // cells in flight; 0: one per core
};

// Checks a user's environment: the sources of each engine against its library, one step per
// attention, and what the published table says of these versions. Nothing is written into the
// environment. Absent: the user interrupted.
absl::StatusOr<std::optional<CheckReport>> CheckEnvironment(const CheckOptions& options,
                                                            RunObserver& observer);

}  // namespace bkm

#endif  // HARNESS_CHECK_CHECK_SESSION_H_
