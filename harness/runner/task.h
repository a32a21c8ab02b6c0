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
#include "harness/model/cell_record.h"
#include "harness/model/subject.h"
#include "harness/runner/executor.h"
#include "harness/runtime/runtime_lock.h"
#include "harness/source/tree_listing.h"

namespace bkm {

// A cell with all that its run needs: or, where that could not be had, the observation that says
// so.
struct PreparedCell {
  CellRecord record;
  std::optional<Subject> engine;  // source trees, where the subject is one
  std::optional<Subject> library;
  // What the trees hold; null for a path subject, which may change under us.
  std::shared_ptr<const TreeListing> engine_listing;
  std::shared_ptr<const TreeListing> library_listing;
  WorkerSetup worker;
  std::shared_ptr<const RuntimeLock> lock;  // null where there is none
  std::filesystem::path probe_folder;
  std::optional<Json> stopped;  // an observation that ended before a process: nothing is run
};

// An observation of another run that stands for a cell.
struct KeptObservation {
  std::string cell;              // id of the cell that was measured
  std::filesystem::path folder;  // its files, by their names in a cell's folder
};

// What is the same for all cells of a run.
struct TaskSettings {
  std::string cell_code;  // Installation::CellCodeDigest
  CellLimits limits;
};

// The request of harness/protocol/README.md. Its "key" is a hash of everything that the observation
// depends on and of nothing else (no path of this machine): equal keys, equal cells.
Json MakeRequest(const PreparedCell& cell, const std::filesystem::path& dir,
                 const TaskSettings& settings);

// The worker that the request was made for.
WorkerSetup WorkerOf(const Json& request, const std::string& key);

// All that a cell is asked, but for the subjects' content: what else the observation depends on.
std::string QuestionText(const PreparedCell& cell, const TaskSettings& settings);

// The cell of the library alone, in the same runtime and with the same probe, that tells whose
// fault a red `cell` is. Absent for a cell that is a control itself.
std::optional<PreparedCell> ControlOf(const PreparedCell& cell);

// Names a control by what it is: ControlOf two cells with the same key is one cell. Empty for a
// cell without one, and for one with a planted fault, which is nobody's control.
std::string ControlKey(const CellRecord& cell);
// The control of `cell` among the cells of `run`; null: it has none, or none was run.
const CellRecord* FindControl(const RunRecord& run, const CellRecord& cell);

}  // namespace bkm

#endif  // HARNESS_RUNNER_TASK_H_
