// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/ending.h"

#include <sys/wait.h>

#include <csignal>

namespace bkm {
namespace {

// What the exceeded limit is on; nullptr if the cell was stopped for another reason.
const char* LimitOf(StopCause stop) {
  switch (stop) {
    case StopCause::kCpu:
      return "cpu";
    case StopCause::kMemory:
      return "memory";
    case StopCause::kOutput:
      return "output";
    case StopCause::kFiles:
      return "files";
    case StopCause::kProcesses:
      return "processes";
    case StopCause::kEvents:
      return "events";
    case StopCause::kNone:
    case StopCause::kTimedOut:
    case StopCause::kCancelled:
      break;
  }
  return nullptr;
}

Json Stopped(const CellExit& exit) {
  Json ending;
  if (const char* limit = LimitOf(exit.stop)) {
    ending = {{"kind", "limit"}, {"limit", limit}};
  } else {
    ending["kind"] = exit.stop == StopCause::kTimedOut ? "timed-out" : "cancelled";
  }
  if (!exit.stop_message.empty()) ending["message"] = exit.stop_message;
  return ending;
}

}  // namespace

Json EndingOf(const CellExit& exit, const EventLog& log) {
  if (exit.stop != StopCause::kNone) return Stopped(exit);
  if (log.failed_to_start()) {
    return {{"kind", "fork-failed"}, {"message", *log.failed_to_start()}};
  }
  if (log.raised()) return {{"kind", "raised"}};
  if (WIFSIGNALED(exit.wait_status)) {
    const int signal = WTERMSIG(exit.wait_status);
    Json ending = {{"kind", "signalled"}, {"signal", signal}};
    // The worker did not send it: the out-of-memory killer did, or a person, or the cell itself.
    if (signal == SIGKILL) ending["from_outside"] = true;
    return ending;
  }
  const int code = WEXITSTATUS(exit.wait_status);
  if (log.done() && code == 0) return {{"kind", "completed"}};
  return {{"kind", "exited"}, {"code", code}};
}

}  // namespace bkm
