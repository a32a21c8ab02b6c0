// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_SANDBOX_LEVELS_H_
#define HARNESS_CELL_SANDBOX_LEVELS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "harness/base/json.h"
#include "harness/model/sandbox_level.h"

namespace bkm {

// The protections of a level that this machine does not offer, each as "NAME: why". Tries them all,
// in children, so that this process stays as it is. Call it while the process has one thread.
std::vector<std::string> MissingProtections(SandboxLevel level);

// {"full":{"available":true,"missing":[]}, ...} for all levels.
Json DescribeSandboxLevels();

// The error of a command that asked for a level which this machine does not offer.
absl::Status LevelNotAvailable(SandboxLevel level, const std::vector<std::string>& missing);
absl::Status LevelNotAvailable(SandboxLevel level, const absl::Status& why);

}  // namespace bkm

#endif  // HARNESS_CELL_SANDBOX_LEVELS_H_
