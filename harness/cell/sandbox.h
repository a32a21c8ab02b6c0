// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_SANDBOX_H_
#define HARNESS_CELL_SANDBOX_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "harness/cell/mounts.h"

namespace bkm {

// The parts of the sandbox that this machine allows.
struct Sandbox {
  bool mount = false;    // the machine's files are read-only, /tmp and /dev/shm are private
  bool network = false;  // only a loopback
  bool pid = false;      // the cell sees and signals only its own processes, and leaves none behind
  bool IsWhole() const { return mount && network && pid; }
  std::vector<std::string> Names() const;
};

// Tries each part in a child. Call it early, while the process is small.
Sandbox ProbeSandbox();

// In the forked cell: enters mount and network namespaces and drops the capabilities to undo that.
// `sandbox.pid`: the process is in its own process namespace already.
absl::Status EnterSandbox(const Sandbox& sandbox, const CellView& view);

}  // namespace bkm

#endif  // HARNESS_CELL_SANDBOX_H_
