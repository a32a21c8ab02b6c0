// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_SANDBOX_H_
#define HARNESS_CELL_SANDBOX_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "harness/cell/mounts.h"

namespace bkm {

// What this machine lets the worker put around a cell.
struct Sandbox {
  bool mount = false;    // the machine's files are read-only, /tmp and /dev/shm are the cell's own
  bool network = false;  // nothing but a loopback
  bool pid = false;      // it sees, signals and leaves behind nothing outside
  bool IsWhole() const { return mount && network && pid; }
  std::vector<std::string> Names() const;
};

// Tries each in a child. Call it early, while the process is small.
Sandbox ProbeSandbox();

// In the forked cell: goes behind mount and network namespaces and gives up the rights to undo
// that. `sandbox.pid` says that the process is in its own process namespace already.
absl::Status EnterSandbox(const Sandbox& sandbox, const CellView& view);

}  // namespace bkm

#endif  // HARNESS_CELL_SANDBOX_H_
