// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_WORKER_SESSION_H_
#define HARNESS_CELL_WORKER_SESSION_H_

#include <sys/types.h>

#include "absl/status/statusor.h"
#include "harness/cell/cell_request.h"
#include "harness/cell/event_writer.h"
#include "harness/cell/interpreter.h"

namespace bkm {

// The interpreter in the worker's own process: one that the worker embeds, or the one that loaded
// the worker.
struct WorkerPython {
  absl::StatusOr<InterpreterReport> (*start)(const InterpreterOptions&);
  int (*run)(const CellRequest&, const EventWriter&);  // for CellSetting
  pid_t (*fork)();                                     // for CellSetting
};

// The worker's whole life, in a process that a supervisor has started: takes its settings from the
// channel, confines itself, starts Python, and serves. Returns the exit status.
int RunWorker(const WorkerPython& python);

}  // namespace bkm

#endif  // HARNESS_CELL_WORKER_SESSION_H_
