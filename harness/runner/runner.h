// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_RUNNER_H_
#define HARNESS_RUNNER_RUNNER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "harness/base/clock.h"
#include "harness/model/cell_record.h"
#include "harness/runner/cell_feed.h"
#include "harness/runner/cell_judge.h"
#include "harness/runner/cell_supply.h"
#include "harness/runner/executor.h"
#include "harness/runner/inherited_cells.h"
#include "harness/runner/observer.h"
#include "harness/runner/run_directory.h"
#include "harness/runner/stored_observations.h"
#include "harness/runner/task.h"

namespace bkm {

struct RunnerOptions {
  int slots = 1;             // processes of cells at once: a cell takes one for each of its ranks
  bool controls = true;      // add the control cells that blame needs
  bool reuse = true;         // keep the observations of equal cells in the run directory
  int verify_inherited = 0;  // measure one in so many cells that could inherit; 0: none
  uint64_t verify_seed = 0;  // chooses these cells
  // The clock's Elapsed() from which on no cell starts. Those that run end, and are judged.
  absl::Duration start_until = absl::InfiniteDuration();
  bool judges = true;  // false: the cells are judged elsewhere, and get no verdicts
  TaskSettings task;
  std::string launcher = "tools/bkm";  // the program that rerun.sh calls
};

// What a runner works with. All must outlive it.
struct RunnerParts {
  const RunDirectory& directory;
  CellExecutor& executor;
  CellJudge& judge;
  StoredObservations& stored;
  CellFeed& feed;
  RunObserver& observer;
  const Clock& clock;
};

// Runs the cells of a plan and keeps their observations in the run directory.
class Runner {
 public:
  Runner(RunnerOptions options, const RunnerParts& parts)
      : options_(std::move(options)),
        directory_(parts.directory),
        executor_(parts.executor),
        judge_(parts.judge),
        stored_(parts.stored),
        feed_(parts.feed),
        observer_(parts.observer),
        clock_(parts.clock),
        inherited_(options_.verify_inherited, options_.verify_seed) {}

  // Runs the cells of `supply` as they become ready, and those of the feed, and adds them and their
  // control cells to `run.cells`. Returns false if the user interrupted or the time was over before
  // all cells ran; the observations so far are kept. After an error of the supply, the cells that
  // run end first.
  absl::StatusOr<bool> Run(CellSupply& supply, RunRecord& run);
  // The number of cells that took an existing observation instead of running.
  int reused() const { return reused_; }
  // Whether reuse proved right where it was checked.
  const InheritedCells& inherited() const { return inherited_; }

 private:
  struct Pending {
    size_t index;
    bool second_try = false;  // retry: alone, with twice the time
    bool measure = false;     // no other observation may stand for it
    bool crashed = false;     // the first try ended by a signal, not by a timeout
  };

  // Adds the cells that have become ready.
  absl::Status TakeReady(CellSupply& supply);
  // Adds a cell at the end of the run.
  absl::Status Add(PreparedCell cell, bool front);
  // Runs the cell that has the place `index` in the run, or takes its result.
  absl::Status Admit(size_t index, PreparedCell cell, bool front);
  // Records a cell that need not run: it is stopped, or the run directory or another run has its
  // observation. False if it must run.
  absl::StatusOr<bool> TakeWithoutRunning(size_t index, const Json& request);
  // Whether the run directory's evidence of the cell is sound. Damaged evidence is set aside.
  bool IsSound(const CellRecord& record);
  // Records that the cell's folder could not be written. The run goes on.
  absl::Status GiveUp(size_t index, const absl::Status& why);
  absl::StatusOr<bool> TakeKept(size_t index, const Json& request);
  // At most all: a cell of more ranks than there are slots runs alone.
  int SlotsOf(size_t index) const;
  // Whether the devices have room for the cell beside those in flight.
  bool DevicesHaveRoom(size_t index) const;
  int BusySlots() const;
  // How many goldens and floors may be computed at once beside the cells that run.
  int SlotsForReferences();
  absl::Status StartReady();
  absl::StatusOr<bool> TakeLate(const Pending& pending);
  absl::Status StartOne(const Pending& pending);
  absl::Status HandleFinished(CellFinished finished);
  absl::Status Judge(size_t index);
  absl::Status Inherit(size_t equal, size_t from);
  // `observed`: what the worker saw from outside the cell. `may_keep`: other runs of this machine
  // may take the observation.
  absl::Status Record(size_t index, CellFacts facts, const Json& observed, bool reused,
                      bool may_keep = true);
  // Compares a cell of the sample with the observation that could have stood for it. After a
  // difference, no cell keeps that observation.
  absl::Status CheckInherited(size_t index, const CellFacts& facts);
  void MeasureAgain(size_t index, const std::string& why);
  absl::Status AddControlFor(size_t index, const Observation& seen);
  absl::Status AddTwinsFor(size_t index);
  // Tells the feed the verdicts that are known now, and adds the cells that it chooses next.
  absl::Status TellAndFeed();
  absl::Status TellJudged();
  bool IsNeeded(const std::string& worker) const;
  void ReleaseWorker(const std::string& key);
  std::deque<Pending>::iterator NextPending();
  absl::Status WriteRunSoon(bool now);

  RunnerOptions options_;
  const RunDirectory& directory_;
  CellExecutor& executor_;
  CellJudge& judge_;
  StoredObservations& stored_;
  CellFeed& feed_;
  RunObserver& observer_;
  const Clock& clock_;

  RunRecord* run_ = nullptr;
  std::vector<PreparedCell> cells_;  // same order as run_->cells
  std::deque<Pending> pending_;
  std::map<std::string, Pending> in_flight_;  // by id
  std::map<std::string, size_t>
      first_of_request_;  // request key -> cell whose observation stands for its equals
  std::map<size_t, std::vector<size_t>>
      waiting_;  // cell -> equal cells that wait for its observation
  std::map<size_t, std::vector<size_t>> equals_;  // cell -> equal cells that took its observation
  InheritedCells inherited_;
  std::set<std::string> controls_;    // ControlKey of every control in the run
  std::set<std::string> twins_;       // id of every twin in the run
  std::set<std::string> workers_up_;  // keys that cells were started for and that were not released
  std::set<size_t> measured_;         // cells that have an observation
  std::vector<size_t> untold_;        // cells that feed_ has not been told of
  bool alone_ = false;                // a retry is running
  bool more_to_come_ = false;         // the supply is preparing cells
  int background_ = 0;
  int reused_ = 0;
  size_t unwritten_ = 0;        // cells recorded since run.json was written
  absl::Duration run_written_;  // when that was
  absl::Duration write_took_;
};

}  // namespace bkm

#endif  // HARNESS_RUNNER_RUNNER_H_
