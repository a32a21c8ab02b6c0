// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_EXECUTOR_H_
#define HARNESS_RUNNER_EXECUTOR_H_

#include <chrono>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "harness/base/json.h"

namespace bkm {

// The environment that a worker serves. Equal `key`: the same worker can run the cell.
struct WorkerSetup {
  std::string key;               // the runtime's lock
  std::filesystem::path python;  // the environment's interpreter
  // Of another version than the worker embeds: a process of that interpreter for each cell.
  bool alone = false;
  // Where its compiled Python lies, instead of beside the sources; or empty.
  std::filesystem::path bytecode;
};

// One cell, ready to run: `request` is what the worker reads (harness/protocol/README.md).
struct CellTask {
  std::string id;
  WorkerSetup worker;
  Json request;
};

struct CellFinished {
  std::string id;
  Json observation;
};
struct Interrupted {};     // the user asked to stop
struct DeadlinePassed {};  // nothing happened in time
using WaitResult = std::variant<CellFinished, Interrupted, DeadlinePassed>;

// Runs cells, some at a time. Every started cell comes back from WaitAny exactly once, whatever
// happens to it: a cell whose worker died or could not start comes back with an ending of kind
// "lost".
class CellExecutor {
 public:
  virtual ~CellExecutor() = default;
  // Cells in flight.
  virtual int running() const = 0;
  virtual void Start(const CellTask& task) = 0;
  virtual WaitResult WaitAny(std::chrono::milliseconds deadline) = 0;
  // No more cells for this worker are known: it may go when its last cell has ended.
  virtual void Release(const std::string& worker_key) = 0;
  // Ends every cell in flight; each comes back with an ending of kind "cancelled".
  virtual void CancelAll() = 0;
};

}  // namespace bkm

#endif  // HARNESS_RUNNER_EXECUTOR_H_
