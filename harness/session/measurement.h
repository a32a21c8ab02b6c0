// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SESSION_MEASUREMENT_H_
#define HARNESS_SESSION_MEASUREMENT_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "harness/matrix/matrix.h"
#include "harness/matrix/plan.h"
#include "harness/model/cell_record.h"
#include "harness/model/sandbox_level.h"
#include "harness/runner/cell_feed.h"
#include "harness/runner/cell_supply.h"
#include "harness/runner/executor.h"
#include "harness/runner/installation.h"
#include "harness/runner/observer.h"
#include "harness/runner/preparation.h"
#include "harness/runner/run_directory.h"
#include "harness/runner/task.h"
#include "harness/session/interrupt.h"

namespace bkm {

struct ExecutorSetup;

// Makes an executor of other machines.
using ExecutorMaker =
    std::function<absl::StatusOr<std::unique_ptr<CellExecutor>>(const ExecutorSetup&)>;

struct MeasurementOptions {
  int slots = 0;              // cells in flight; 0: as the executor says, or one per core
  bool fresh = false;         // each cell gets its own process
  bool controls = true;       // add the control cells that blame needs
  bool reuse = true;          // keep the observations in the run directory
  bool store = true;          // take the observations of other runs, too; needs `reuse`
  int verify_inherited = 20;  // measure one in so many cells that could inherit; 0: none
  SandboxLevel sandbox = SandboxLevel::kFull;
  // RealClock's Elapsed() from which on no cell starts.
  absl::Duration start_until = absl::InfiniteDuration();
  ExecutorMaker executor = nullptr;  // null: cells run on this machine
};

// What an executor works with. All must outlive it.
struct ExecutorSetup {
  const Installation& installation;
  const MeasurementOptions& options;
  const RunDirectory& directory;  // for the logs of workers
  RunObserver& observer;
  const InterruptSignals& signals;
};

// What a measurement works with. All must outlive it.
struct MeasurementSetup {
  const Installation& installation;
  const Matrix& matrix;
  const RunDirectory& directory;
  MeasurementOptions options;
  RunObserver& observer;
  const InterruptSignals& signals;
};

// Workers for several runs with these options. Some stay idle between the runs.
absl::StatusOr<std::unique_ptr<CellExecutor>> MakeWorkers(const ExecutorSetup& setup);

// The included cells of `plan`.
std::vector<PlannedCell> Included(const std::vector<PlannedCell>& plan);
// These, ready to run. None if the user interrupted.
absl::StatusOr<std::vector<PreparedCell>> PrepareAll(const std::vector<PlannedCell>& plan,
                                                     Preparation& preparation,
                                                     const InterruptSignals& signals);

// Runs cells as they become ready, computes their references, judges all, and keeps everything in
// the run directory. The record says `finished` unless the user interrupted or the time was over.
// DataLoss if a cell that was measured to check an inherited observation differs from it: run.json
// then holds the corrected results, and a second run takes them.
absl::StatusOr<RunRecord> Measure(const MeasurementSetup& setup, CellSupply& cells);
absl::StatusOr<RunRecord> Measure(const MeasurementSetup& setup, std::vector<PreparedCell> cells);
// The same in `workers`, which stay up for the next run.
absl::StatusOr<RunRecord> Measure(const MeasurementSetup& setup, CellExecutor& workers,
                                  CellSupply& cells);
absl::StatusOr<RunRecord> Measure(const MeasurementSetup& setup, CellExecutor& workers,
                                  std::vector<PreparedCell> cells);
// The same for the cells that `feed` chooses.
absl::StatusOr<RunRecord> Measure(const MeasurementSetup& setup, CellExecutor& workers,
                                  CellFeed& feed);

// Judges the cells of `run` whose observations lie in the directory: computes the references of
// `cells`, and runs no cell. The record says `finished` unless the user interrupted.
absl::Status JudgeMeasured(const Installation& installation, const RunDirectory& directory,
                           const std::vector<PreparedCell>& cells, RunRecord& run,
                           RunObserver& observer, const InterruptSignals& signals);

// The number of cells of a measured run that took an existing observation instead of running.
int ReusedCells(const RunRecord& run);

}  // namespace bkm

#endif  // HARNESS_SESSION_MEASUREMENT_H_
