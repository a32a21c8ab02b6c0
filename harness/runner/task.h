// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_TASK_H_
#define HARNESS_RUNNER_TASK_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "harness/matrix/matrix.h"
#include "harness/model/cell_facts.h"
#include "harness/model/cell_record.h"
#include "harness/model/sandbox_level.h"
#include "harness/model/subject.h"
#include "harness/runner/executor.h"
#include "harness/runtime/runtime_lock.h"
#include "harness/source/tree_listing.h"

namespace bkm {

// A cell with everything that its run needs, or with the observation that says why it cannot run.
struct PreparedCell {
  CellRecord record;
  std::optional<Subject> engine;  // absent if the subject is not a source tree
  std::optional<Subject> library;
  // The files of the trees; null for a path subject, which may change while we run.
  std::shared_ptr<const TreeListing> engine_listing;
  std::shared_ptr<const TreeListing> library_listing;
  WorkerSetup worker;
  std::shared_ptr<const RuntimeLock> lock;  // may be null
  std::filesystem::path probe_folder;
  // That of its control where it is another one: a control has no trainer's data.
  std::filesystem::path control_probe_folder = {};
  // Of a cell on a CUDA device: how many such cells may run at once. 0: it uses no device.
  int device_cells = 0;
  std::optional<CellFacts> stopped;  // the observation of a cell that must not run
};

// An observation of another run that stands for a cell, so that the cell need not run.
struct KeptObservation {
  std::string cell;              // id of the cell that was measured
  std::filesystem::path folder;  // holds its files, named as in a cell's folder
  bool operator==(const KeptObservation&) const = default;
};

// The settings that all cells of a run share.
struct TaskSettings {
  std::string cell_code;  // Installation::CellCodeDigest
  CellLimits limits;
  // What a cell can do to its own result depends on it, so cells of different levels never stand
  // for each other.
  SandboxLevel sandbox = SandboxLevel::kFull;
};

// The request of harness/protocol/README.md. Its "key" is a hash of everything that the observation
// depends on, and of nothing else, such as paths of this machine. Cells with equal keys are equal.
Json MakeRequest(const PreparedCell& cell, const std::filesystem::path& dir,
                 const TaskSettings& settings);

// Everything that the observation of a cell depends on, except the content of its subjects.
std::string QuestionText(const PreparedCell& cell, const TaskSettings& settings);

// The cell that runs the library alone, in the same runtime and with the same probe. It tells whose
// fault a red `cell` is. Absent if `cell` is a control itself.
std::optional<PreparedCell> ControlOf(const PreparedCell& cell);

// The twins of a cell: the same cell without one of its engine options, which shows whether the
// option acts. None for a cell whose numbers are not judged, or with a planted fault.
std::vector<PreparedCell> TwinsOf(const PreparedCell& cell);

// The twin of `cell` without `option` among the cells of `run`; null if there is none.
const CellRecord* FindTwin(const RunRecord& run, const CellRecord& cell, const std::string& option);

// Identifies the control of a cell: cells with equal keys share one. Empty if the cell has none, or
// if it is itself a control with a planted fault, which must not serve as one.
std::string ControlKey(const CellRecord& cell);
// The control of `cell` among the cells of `run`; null if there is none.
const CellRecord* FindControl(const RunRecord& run, const CellRecord& cell);

}  // namespace bkm

#endif  // HARNESS_RUNNER_TASK_H_
