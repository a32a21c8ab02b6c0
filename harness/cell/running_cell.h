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
#include "harness/cell/cell_order.h"
#include "harness/cell/cell_process.h"
#include "harness/cell/ending.h"
#include "harness/cell/event_log.h"
#include "harness/cell/watchdog.h"

namespace bkm {

// A cell in flight, from its fork until all its processes have ended.
class RunningCell {
 public:
  static absl::StatusOr<std::unique_ptr<RunningCell>> Start(CellOrder order,
                                                            const CellSetting& setting);

  const std::string& cell() const { return order_.cell; }
  pid_t pid() const { return process_.pid; }
  int pidfd() const { return process_.pidfd.get(); }

  // The descriptors to poll, and the latest time to call Tend().
  void AddPollFds(std::vector<pollfd>& fds) const;
  std::chrono::steady_clock::time_point NextCheck() const;

  // Takes events, checks the limits, reaps. True once the cell and all its processes have ended.
  bool Tend();
  // Kills the cell, unless it has ended already.
  void End(StopCause stop, std::string message);

  // The observation; call it after Tend() returned true.
  Json Observation() const;
  // What was seen of the cell's processes from outside: no process of the cell said any of it. Call
  // it after Tend() returned true.
  Json Process() const;

 private:
  RunningCell(CellOrder order, CellProcess process, ProcessTree tree);
  void Drain();
  void Reap();
  void KillSeen();
  Json Usage() const;

  CellOrder order_;
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
