// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_CELL_PROCESS_H_
#define HARNESS_CELL_CELL_PROCESS_H_

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/descriptor.h"
#include "harness/cell/cell_request.h"
#include "harness/cell/event_writer.h"
#include "harness/cell/pid_namespace.h"
#include "harness/cell/sandbox.h"

namespace bkm {

// What all cells of a worker share.
struct CellSetting {
  Sandbox sandbox;
  std::vector<std::filesystem::path> reads;  // of the environment: its packages and interpreter
  // What runs in the cell; gives the exit status.
  std::function<int(const CellRequest&, const EventWriter&)> body;
};

// A forked cell, from the worker's side.
struct CellProcess {
  pid_t pid = -1;
  Descriptor pidfd;   // readable when the cell's own process has ended
  Descriptor events;  // the reading end, non-blocking
  std::optional<PidNamespace> space;

  // Kills the cell and, as far as the sandbox reaches, everything it started.
  void Kill();
};

// Makes the cell's folders and forks it. An error is the machine's fault: no folder, no process.
absl::StatusOr<CellProcess> StartCell(const CellRequest& request, const CellSetting& setting);

}  // namespace bkm

#endif  // HARNESS_CELL_CELL_PROCESS_H_
