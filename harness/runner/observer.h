// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_OBSERVER_H_
#define HARNESS_RUNNER_OBSERVER_H_

#include <string>

#include "harness/model/cell_record.h"

namespace bkm {

// Receives the events of a run, in order, on the runner's thread.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  // Preparation that takes time: "resolving 9 runtimes (8 at once)".
  virtual void OnSetUp(const std::string& /*what*/) {}
  virtual void OnPlanned(int /*cells*/) {}
  virtual void OnStarted(const CellRecord& /*cell*/, int /*running*/) {}
  // `cell.verdict` is provisional: blame may change when control cells have run. It is absent while
  // the cell's golden or floor is being computed.
  virtual void OnFinished(const CellRecord& /*cell*/, bool /*reused*/) {}
  // A cell that had finished without a verdict has one.
  virtual void OnJudged(const CellRecord& /*cell*/) {}
  // The run needs a further cell: a control, a repeat.
  virtual void OnAdded(const CellRecord& /*cell*/, const std::string& /*why*/) {}
  // The run needs a cell again.
  virtual void OnAgain(const CellRecord& /*cell*/, const std::string& /*why*/) {}
  virtual void OnTick(int /*running*/) {}
  // Something worth knowing that is not progress: "12 source files scanned and cached".
  virtual void OnNote(const std::string& /*what*/) {}
  // Something went wrong that does not stop the run.
  virtual void OnWarning(const std::string& /*what*/) {}
};

// Passes on notes and warnings only: for a run inside a command that reports progress itself.
class WarningsOnly : public RunObserver {
 public:
  explicit WarningsOnly(RunObserver& observer) : observer_(observer) {}
  void OnNote(const std::string& what) override { observer_.OnNote(what); }
  void OnWarning(const std::string& what) override { observer_.OnWarning(what); }

 private:
  RunObserver& observer_;
};

}  // namespace bkm

#endif  // HARNESS_RUNNER_OBSERVER_H_
