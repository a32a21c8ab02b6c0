// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_STORE_GARBAGE_H_
#define HARNESS_STORE_GARBAGE_H_

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace bkm {

// Removes from `cache` the source trees, environments, probes and observations that no run has used
// since `before`, the kept files that no tree links to, and leftovers of bkm check and of patched
// trees. The next run that needs one of them creates it again. Returns what was removed, as
// "trees/KEY". `before` must lie further back than the longest run takes, because a run that is
// still going may need what it used at its start.
absl::StatusOr<std::vector<std::string>> CollectGarbage(
    const std::filesystem::path& cache, std::chrono::system_clock::time_point before);

}  // namespace bkm

#endif  // HARNESS_STORE_GARBAGE_H_
