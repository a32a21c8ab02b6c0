// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_CELL_PROCESS_H_
#define HARNESS_CELL_CELL_PROCESS_H_

#include <sys/types.h>
#include <unistd.h>

#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "harness/base/descriptor.h"
#include "harness/cell/cell_order.h"
#include "harness/cell/event_writer.h"
#include "harness/cell/pid_namespace.h"
#include "harness/cell/sandbox.h"

namespace bkm {

// The settings that all cells of a worker share.
struct CellSetting {
  Sandbox sandbox;
  // Runs in the cell and returns its exit status.
  std::function<int(const CellRequest&, const EventWriter&)> body;
  pid_t (*fork)() = ::fork;  // an embedded Python must hear of forks
};

// A forked cell, as the worker sees it.
struct CellProcess {
  pid_t pid = -1;
  Descriptor pidfd;   // readable once the cell's own process has ended
  Descriptor events;  // the pipe's reading end, non-blocking
  std::optional<PidNamespace> space;

  // Kills the cell and everything it started, as far as the sandbox allows.
  void Kill();
};

// Forks the cell into its sandbox. An error is the machine's: no process.
absl::StatusOr<CellProcess> StartCell(const CellOrder& order, const CellSetting& setting);

}  // namespace bkm

#endif  // HARNESS_CELL_CELL_PROCESS_H_
