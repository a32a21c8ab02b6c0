// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/ending.h"

#include <sys/wait.h>

#include <csignal>

namespace bkm {
namespace {

Json Stopped(const CellExit& exit) {
  Json ending;
  switch (exit.stop) {
    case StopCause::kTimedOut:
      ending["kind"] = "timed-out";
      break;
    case StopCause::kCancelled:
      ending["kind"] = "cancelled";
      break;
    default:
      ending["kind"] = "limit";
      ending["limit"] = exit.stop == StopCause::kMemory   ? "memory"
                        : exit.stop == StopCause::kOutput ? "output"
                        : exit.stop == StopCause::kEvents ? "events"
                                                          : "processes";
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
