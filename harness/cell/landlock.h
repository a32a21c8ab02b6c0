// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_LANDLOCK_H_
#define HARNESS_CELL_LANDLOCK_H_

#include <filesystem>
#include <vector>

#include "absl/status/status.h"

namespace bkm {

struct LandlockRules {
  std::vector<std::filesystem::path> reads;   // read and execute
  std::vector<std::filesystem::path> writes;  // everything but device nodes
};

// The version of Landlock that this kernel offers; 0: none.
int LandlockVersion();

// Restricts this process, and all that it starts, to these paths, for good; where the kernel can,
// also from abstract sockets and signals to processes outside. Paths that are missing
// are left out. The process must have no_new_privs.
absl::Status EnterLandlock(const LandlockRules& rules);

}  // namespace bkm

#endif  // HARNESS_CELL_LANDLOCK_H_
