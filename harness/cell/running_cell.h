// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_RUNNING_CELL_H_
#define HARNESS_CELL_RUNNING_CELL_H_

#include <poll.h>
#include <sys/resource.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/json.h"
#include "harness/cell/cell_process.h"
#include "harness/cell/cell_request.h"
#include "harness/cell/ending.h"
#include "harness/cell/event_log.h"
#include "harness/cell/watchdog.h"

namespace bkm {

// A cell in flight, from its fork until all its processes have ended.
class RunningCell {
 public:
  static absl::StatusOr<std::unique_ptr<RunningCell>> Start(CellRequest request,
                                                            const CellSetting& setting);

  const std::string& cell() const { return request_.cell; }
  pid_t pid() const { return process_.pid; }

  // The descriptors to poll, and the latest time to call Tend().
  void AddPollFds(std::vector<pollfd>& fds) const;
  std::chrono::steady_clock::time_point NextCheck() const;

  // Takes events, checks the limits, reaps. True once the cell and all its processes have ended.
  bool Tend();
  // Kills the cell, unless it has ended already.
  void End(StopCause stop, std::string message);

  // The observation; call it after Tend() returned true.
  Json Observation() const;

 private:
  RunningCell(CellRequest request, CellProcess process, Watchdog watchdog);
  void Drain();
  void Reap();
  void KillSeen();

  CellRequest request_;
  CellProcess process_;
  Watchdog watchdog_;
  EventLog log_;
  CellExit exit_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double wall_s_ = 0;  // from the fork to the end of its process
  rusage usage_ = {};
  bool reaped_ = false;  // the cell's own process is reaped
};

}  // namespace bkm

#endif  // HARNESS_CELL_RUNNING_CELL_H_
