// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_RUNNER_H_
#define HARNESS_RUNNER_RUNNER_H_

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/model/cell_record.h"
#include "harness/runner/executor.h"
#include "harness/runner/observer.h"
#include "harness/runner/run_directory.h"
#include "harness/runner/task.h"

namespace bkm {

struct RunnerOptions {
  int slots = 1;
  bool controls = true;  // add the control cells that blame needs
  bool reuse = true;     // an observation of an equal cell in the run directory stands
  TaskSettings task;
  std::string launcher = "tools/bkm";  // what rerun.sh calls
};

// What the runner needs besides cells: each may be nothing.
struct RunnerHooks {
  // The verdict of a finished cell as far as it can be said now.
  std::function<absl::StatusOr<std::optional<Verdict>>(const CellRecord&)> judge;
  // Work that shares the slots (goldens, floors): called often; returns how many slots it holds.
  std::function<int(bool may_start)> background;
  // Called with each new observation, before it is judged.
  std::function<absl::Status(const PreparedCell&, const Json& observation)> observed;
  // An observation of another run that stands for the cell.
  std::function<std::optional<KeptObservation>(const PreparedCell&)> kept;
  // Called while slots are free: up to `room` cells more, chosen by what is known by now. None,
  // while nothing runs, waits or is still to be judged, ends the run.
  std::function<absl::StatusOr<std::vector<PreparedCell>>(int room)> feed;
  // Called once for each cell when its verdict stands: all that it is judged by is there. Blame may
  // still change.
  std::function<absl::Status(const CellRecord&)> judged;
};

// Runs the cells of a plan and keeps their observations in the run directory. Judges nothing
// itself.
class Runner {
 public:
  Runner(RunnerOptions options, RunnerHooks hooks, const RunDirectory& directory,
         CellExecutor& executor, RunObserver& observer)
      : options_(std::move(options)),
        hooks_(std::move(hooks)),
        directory_(directory),
        executor_(executor),
        observer_(observer) {}

  // True: every cell was measured. False: interrupted; what was measured is kept. `run.cells` grows
  // by the control cells.
  absl::StatusOr<bool> Run(std::vector<PreparedCell> cells, RunRecord& run);
  // Cells that took an observation that was there already.
  int reused() const { return reused_; }

 private:
  struct Pending {
    size_t index;
    bool second_try = false;  // after a timeout: alone, with twice the limit
  };

  absl::Status Add(PreparedCell cell, bool front);
  // Takes what can be had without running: a stopped cell, a reusable observation, an equal cell of
  // this run.
  absl::StatusOr<bool> TakeWithoutRunning(size_t index, const Json& request);
  absl::StatusOr<bool> TakeKept(size_t index, const Json& request);
  absl::Status StartReady();
  absl::StatusOr<bool> TakeLate(const Pending& pending);
  absl::Status StartOne(const Pending& pending);
  absl::Status HandleFinished(const CellFinished& finished);
  absl::Status Judge(size_t index);
  absl::Status Inherit(size_t equal, size_t from);
  absl::Status Record(size_t index, Json observation, bool reused);
  absl::Status AddControlFor(size_t index, const Json& observation);
  // Tells what can be judged by now, and takes what the feed asks for because of it.
  absl::Status TellAndFeed();
  absl::Status TellJudged();
  bool IsNeeded(const std::string& worker) const;
  void ReleaseWorker(const std::string& key);
  std::deque<Pending>::iterator NextPending();
  absl::Status WriteRunSoon(bool now);

  RunnerOptions options_;
  RunnerHooks hooks_;
  const RunDirectory& directory_;
  CellExecutor& executor_;
  RunObserver& observer_;

  RunRecord* run_ = nullptr;
  std::vector<PreparedCell> cells_;  // same order as run_->cells
  std::deque<Pending> pending_;
  std::map<std::string, Pending> in_flight_;  // by id
  std::map<std::string, size_t>
      first_of_request_;  // request key -> cell whose observation stands for its equals
  std::map<size_t, std::vector<size_t>>
      waiting_;                       // cell -> equal cells that wait for its observation
  std::set<std::string> controls_;    // ControlKey of every control in the run
  std::set<std::string> workers_up_;  // keys that cells were started for and that were not released
  std::set<size_t> measured_;         // cells whose observation is there
  std::vector<size_t> untold_;        // cells that hooks_.judged has not heard of yet
  bool alone_ = false;                // a second try is running
  int background_ = 0;
  int reused_ = 0;
  size_t unwritten_ = 0;
};

}  // namespace bkm

#endif  // HARNESS_RUNNER_RUNNER_H_
