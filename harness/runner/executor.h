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

// The environment that a worker serves. A worker runs all cells with its `key`.
struct WorkerSetup {
  std::string key;               // the runtime's lock
  std::filesystem::path python;  // the environment's interpreter
  // The worker cannot embed `python`, which becomes the worker itself (RunsAlone).
  bool alone = false;
  // The folder of its compiled Python; empty: beside the sources.
  std::filesystem::path bytecode;
  // What cells may read beside the environment: where a user's packages lie elsewhere.
  std::vector<std::filesystem::path> reads;
};

// One cell, ready to run. The worker reads `request` (harness/protocol/README.md).
struct CellTask {
  std::string id;
  WorkerSetup worker;
  Json request;
};

struct CellFinished {
  std::string id;
  Json observation;
  Json observed = nullptr;  // what the worker saw from outside the cell; null: nothing
};
struct Interrupted {};     // the user asked to stop
struct DeadlinePassed {};  // no cell ended before the deadline
using WaitResult = std::variant<CellFinished, Interrupted, DeadlinePassed>;

// Runs several cells at once. WaitAny returns every started cell exactly once. A cell whose worker
// died or could not start is returned with an ending of kind "lost".
class CellExecutor {
 public:
  virtual ~CellExecutor() = default;
  // Cells in flight.
  virtual int running() const = 0;
  virtual void Start(const CellTask& task) = 0;
  virtual WaitResult WaitAny(std::chrono::milliseconds deadline) = 0;
  // No further cell is planned for this worker: it may exit after its last cell.
  virtual void Release(const std::string& worker_key) = 0;
  // Ends every cell in flight. WaitAny returns each with an ending of kind "cancelled".
  virtual void CancelAll() = 0;
};

}  // namespace bkm

#endif  // HARNESS_RUNNER_EXECUTOR_H_
