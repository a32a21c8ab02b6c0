// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_EXECUTOR_H_
#define HARNESS_RUNNER_EXECUTOR_H_

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "harness/base/json.h"
#include "harness/model/cell_facts.h"

namespace bkm {

struct PreparedCell;
struct TaskSettings;

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
  // Nothing is loaded before the fork of a cell: what asks the driver of a GPU there leaves a
  // driver that no fork can use.
  bool cold = false;
};

// One cell, ready to run. The worker reads `request` (harness/protocol/README.md).
struct CellTask {
  std::string id;
  WorkerSetup worker;
  Json request;
  // What `request` was made of, for an executor of other machines. Valid until Start() returns; may
  // be null.
  const PreparedCell* cell = nullptr;
  const TaskSettings* settings = nullptr;
};

// What is known of the machine of a cell that did not run on this one.
struct OtherMachine {
  ObservedMachine facts;  // MachineFacts() there, after the cell
  bool same_cpu = false;  // its CPU computes the same bits as this machine's
};

struct CellFinished {
  std::string id;
  CellFacts facts;
  Json observed = nullptr;  // what the worker saw from outside the cell; null: nothing
  std::optional<OtherMachine> machine = std::nullopt;  // absent: this machine
};
// A cell that ran twice, because its first run seemed lost, with two different results.
struct UnequalResults {
  std::string id;
  std::string what;  // the first fact that differs
  bool operator==(const UnequalResults&) const = default;
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
  // How many cells can run at once; 0: the executor does not know better than its caller.
  virtual int slots() const { return 0; }
  // Starts to load the runtime of a worker before its first cell is known.
  virtual void Load(const WorkerSetup& /*setup*/) {}
  virtual void Start(const CellTask& task) = 0;
  virtual WaitResult WaitAny(std::chrono::milliseconds deadline) = 0;
  // No further cell is planned for this worker: it may exit after its last cell.
  virtual void Release(const std::string& worker_key) = 0;
  // Ends every cell in flight. WaitAny returns each with an ending of kind "cancelled".
  virtual void CancelAll() = 0;
  // Total seconds that the workers have spent loading their runtimes.
  virtual double preload_s() const { return 0; }
  // The cells that were seen to vary since the last call.
  virtual std::vector<UnequalResults> TakeUnequal() { return {}; }
  // What cells ran on, for made_by.machines of run.json; empty: this machine.
  virtual Json machines() const { return Json::array(); }
};

}  // namespace bkm

#endif  // HARNESS_RUNNER_EXECUTOR_H_
