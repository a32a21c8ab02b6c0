// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_PREPARING_CELLS_H_
#define HARNESS_RUNNER_PREPARING_CELLS_H_

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "harness/matrix/plan.h"
#include "harness/runner/cell_supply.h"
#include "harness/runner/runtime_preparation.h"

namespace bkm {

// Gives a cell the observation that it ended in `stage` before its process was started.
void StopCell(PreparedCell& cell, Stage stage, EndingKind ending, absl::string_view message);
// The stage in which a cell of a faulty subject or lock stops.
Stage StageOf(EndingKind ending);

// What one cell needs beside its runtime, in the order of the calls.
class CellSteps {
 public:
  virtual ~CellSteps() = default;
  // The cell with its source trees; stopped if they are at fault.
  virtual absl::StatusOr<PreparedCell> PrepareSubjects(const PlannedCell& planned) = 0;
  // The request points into `cell`.
  virtual absl::StatusOr<RuntimeRequest> RequestOf(const PreparedCell& cell) = 0;
  virtual void UseLock(std::shared_ptr<const RuntimeLock> lock, PreparedCell& cell) = 0;
  // Gives the cell the python of its environment, and its probe.
  virtual absl::Status Finish(const std::filesystem::path& python, PreparedCell& cell) = 0;
};

// Planned cells while they are prepared: a cell is ready as soon as its own runtime is. A lock or
// an environment that fails stops only its cells. Errors: see Preparation::PrepareAll.
class PreparingCells : public CellSupply {
 public:
  // Prepares the subjects of the cells now, and their runtimes from now on. Cancelled: `stop`
  // became true. `steps` and `runtimes` must outlive this object.
  static absl::StatusOr<std::unique_ptr<PreparingCells>> Begin(CellSteps& steps,
                                                               RuntimePreparation& runtimes,
                                                               const std::vector<PlannedCell>& plan,
                                                               const std::function<bool()>& stop);
  // Starts nothing further, and waits for the resolutions and installations that run.
  ~PreparingCells() override;

  std::vector<CellRecord> records() const override;
  absl::StatusOr<std::vector<Ready>> Take() override { return TakeWithin(absl::ZeroDuration()); }
  // As Take; if nothing is ready, waits up to `wait` for something to end.
  absl::StatusOr<std::vector<Ready>> TakeWithin(absl::Duration wait);
  bool done() const override { return taken_ == cells_.size(); }

  // All cells, in their order; those that are not ready lack what Take would have added.
  const std::vector<PreparedCell>& cells() const { return cells_; }

 private:
  enum class State { kResolving, kInstalling, kReady, kTaken };

  PreparingCells(CellSteps& steps, RuntimePreparation& runtimes)
      : steps_(steps), runtimes_(runtimes) {}

  // Take the cells as far as the results so far allow. The first error in the cells' order.
  absl::Status AdvanceAll();
  absl::Status UseResolution(size_t index);
  absl::Status UseEnvironment(size_t index);
  void Stop(size_t index, Stage stage, EndingKind ending, absl::string_view message);

  CellSteps& steps_;
  RuntimePreparation& runtimes_;
  std::vector<PreparedCell> cells_;
  std::vector<State> states_;
  std::vector<std::string> keys_;  // of the resolutions; empty for a cell that needs none
  std::map<std::string, std::shared_ptr<const RuntimeLock>> locks_;  // by key of the resolution
  size_t taken_ = 0;
  bool resolved_some_ = false;
  bool installed_some_ = false;
  bool changed_ = true;  // something has ended since the cells were last looked at
};

}  // namespace bkm

#endif  // HARNESS_RUNNER_PREPARING_CELLS_H_
