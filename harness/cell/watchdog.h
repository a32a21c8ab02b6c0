// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_WATCHDOG_H_
#define HARNESS_CELL_WATCHDOG_H_

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "harness/cell/cell_request.h"
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

  // `shared_kib`: the worker's memory at the fork; each process of the cell starts with it.
  Watchdog(const CellRequest& request, ProcessTree tree, int64_t shared_kib);

  // kNone while the cell is within its limits. It checks the processes only every kInterval.
  Overrun Check(Clock::time_point now);
  // After the cell's end: checks the output written since the last Check().
  Overrun CheckOutput() const;
  // The next time at which Check() measures.
  Clock::time_point NextCheck() const { return next_; }

  const ProcessTree& tree() const { return tree_; }

  static constexpr auto kInterval = std::chrono::milliseconds(100);

 private:
  Overrun CheckProcesses();
  int64_t OutputBytes(bool with_work) const;

  RequestedLimits limits_;
  std::filesystem::path dir_;
  ProcessTree tree_;
  int64_t shared_kib_;
  Clock::time_point start_;
  Clock::time_point next_;
  int looks_ = 0;
};

// Resident memory of this process, KiB.
int64_t OwnResidentKib();

}  // namespace bkm

#endif  // HARNESS_CELL_WATCHDOG_H_
