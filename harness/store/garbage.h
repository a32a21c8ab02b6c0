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

// Removes the source trees, environments, probes and observations below `cache` that no run has
// asked for since `before`, the files of trees that no tree has any more, and what bkm check and
// patched trees left behind; the next run that needs one makes it again. Returns what went, as
// "trees/KEY". Whoever collects gives running runs their due: `before` lies further back than the
// longest run.
absl::StatusOr<std::vector<std::string>> CollectGarbage(
    const std::filesystem::path& cache, std::chrono::system_clock::time_point before);

}  // namespace bkm

#endif  // HARNESS_STORE_GARBAGE_H_
