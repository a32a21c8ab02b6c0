// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_WATCHDOG_H_
#define HARNESS_CELL_WATCHDOG_H_

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "harness/cell/cell_order.h"
#include "harness/cell/ending.h"
#include "harness/cell/process_tree.h"

namespace bkm {

// The exceeded limit, and the measured value in words.
struct Overrun {
  StopCause stop = StopCause::kNone;
  std::string message;
};

// Measures one cell against its limits. Check() is cheap enough to call ten times a second.
class Watchdog {
 public:
  using Clock = std::chrono::steady_clock;

  // `order` must outlive this. `shared_kib`: the worker's memory at the fork; each process of the
  // cell starts with it.
  Watchdog(const CellOrder& order, ProcessTree tree, int64_t shared_kib);

  // kNone while the cell is within its limits. It checks the processes only every kInterval.
  Overrun Check(Clock::time_point now);
  // After the cell's end: checks the files written since the last Check().
  Overrun CheckFiles() const { return CheckFiles(/*with_folders=*/true); }
  // The next time at which Check() measures.
  Clock::time_point NextCheck() const { return next_; }

  const ProcessTree& tree() const { return tree_; }
  // Names of the shared libraries that the cell's processes were seen to map, and this process had
  // not mapped at the fork.
  std::vector<std::string> Libraries() const;

  static constexpr auto kInterval = std::chrono::milliseconds(100);

 private:
  Overrun CheckProcesses();
  Overrun CheckCpu() const;
  Overrun CheckFiles(bool with_folders) const;

  const CellOrder& order_;
  const RequestedLimits& limits_;
  ProcessTree tree_;
  int64_t shared_kib_;
  double cpu_before_s_;  // what the control group's account said at the start
  Clock::time_point start_;
  Clock::time_point next_;
  int looks_ = 0;
  std::set<std::string> own_libraries_;
  std::set<std::string> libraries_;
};

// Resident memory of this process, KiB.
int64_t OwnResidentKib();

}  // namespace bkm

#endif  // HARNESS_CELL_WATCHDOG_H_
