// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_LANDLOCK_H_
#define HARNESS_CELL_LANDLOCK_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace bkm {

struct LandlockRules {
  std::vector<std::filesystem::path> reads;   // read and execute
  std::vector<std::filesystem::path> writes;  // everything but device nodes
};

// The version of Landlock that this kernel offers; 0: none.
int LandlockVersion();

// Which protection of the weak sandbox a version of Landlock lacks, and where it is offered; empty
// if none. A kernel that offers less is not used: the weak sandbox has no other means for these.
std::string MissingInLandlock(int version);

// Restricts this process, and all that it starts, to these paths, for good. Keeps it from abstract
// sockets of and signals to processes outside, and from connecting by TCP; it may listen on ports
// that the kernel chooses. Paths that are missing are left out. The
// process must have no_new_privs.
absl::Status EnterLandlock(const LandlockRules& rules);

}  // namespace bkm

#endif  // HARNESS_CELL_LANDLOCK_H_
