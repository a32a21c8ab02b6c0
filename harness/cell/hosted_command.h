// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_HOSTED_COMMAND_H_
#define HARNESS_CELL_HOSTED_COMMAND_H_

#include <filesystem>
#include <map>
#include <string>

#include "absl/status/status.h"

namespace bkm {

// Replaces this process, which is in the worker's root folder, by `python`, which becomes the
// worker: it loads `library`, the open libbkm_worker.so, and runs nothing of its environment
// before. An interpreter that cannot run cells sends a "fatal" message on kWorkerChannel and ends.
// Returns only an error.
absl::Status ExecuteHosted(const std::filesystem::path& python, int library,
                           const std::map<std::string, std::string>& environment);

}  // namespace bkm

#endif  // HARNESS_CELL_HOSTED_COMMAND_H_
