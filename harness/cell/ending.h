// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_ENDING_H_
#define HARNESS_CELL_ENDING_H_

#include <string>

#include "harness/base/json.h"
#include "harness/cell/event_log.h"

namespace bkm {

// The worker's own reason to end a cell.
enum class StopCause {
  kNone,
  kTimedOut,
  kCpu,
  kMemory,
  kOutput,
  kFiles,
  kProcesses,
  kEvents,
  kCancelled
};

// How a cell's process ended, as seen by the worker.
struct CellExit {
  StopCause stop = StopCause::kNone;
  std::string stop_message;  // the measured value and its limit
  int wait_status = 0;       // from wait4
};

// The "ending" of the observation, from the first of these that applies: the worker's reason, the
// cell's last event (exception or done), the wait status.
Json EndingOf(const CellExit& exit, const EventLog& log);

}  // namespace bkm

#endif  // HARNESS_CELL_ENDING_H_
