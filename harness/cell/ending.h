// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_ENDING_H_
#define HARNESS_CELL_ENDING_H_

#include <string>

#include "harness/base/json.h"
#include "harness/cell/event_log.h"

namespace bkm {

// Why the worker itself ended a cell, if it did.
enum class StopCause { kNone, kTimedOut, kMemory, kOutput, kProcesses, kCancelled };

// How a cell's process ended, as the worker knows it.
struct CellExit {
  StopCause stop = StopCause::kNone;
  std::string stop_message;  // the measure that was over its limit
  int wait_status = 0;       // as wait4 gives it
};

// The "ending" of the observation. What the worker did comes first, then the cell's own last word
// (exception or done), then what the kernel says.
Json EndingOf(const CellExit& exit, const EventLog& log);

}  // namespace bkm

#endif  // HARNESS_CELL_ENDING_H_
