// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RAY_SERVED_CELL_H_
#define HARNESS_RAY_SERVED_CELL_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/json.h"
#include "harness/bundle/packed_cells.h"
#include "harness/bundle/part_file.h"
#include "harness/bundle/placement.h"
#include "harness/bundle/work_runtimes.h"
#include "harness/runner/executor.h"
#include "harness/runner/installation.h"
#include "harness/runner/observer.h"
#include "harness/runner/task.h"

namespace bkm {

// A cell on its way into a worker of this machine: a manifest of one cell, whose parts may have to
// come first.
struct ServedCell {
  int64_t lease = 0;
  std::string key;  // of its request
  int timeout_s = 0;
  std::string manifest;
  std::set<std::string> missing;  // parts that were asked for
};
absl::StatusOr<ServedCell> ReadServedCell(const Json& message);

// Prepares cells of one runtime. Parts are kept in the cache of this machine, by content.
class CellPreparer {
 public:
  static absl::StatusOr<std::unique_ptr<CellPreparer>> Create(const Installation& installation,
                                                              TaskSettings settings,
                                                              RunObserver& observer);

  absl::Status AddParts(const std::vector<std::string>& contents);
  // The task, with `folder` as the cell's; nullopt if parts are missing, which `cell` then names.
  // An error is one sentence that says why this machine cannot run the cell.
  absl::StatusOr<std::optional<CellTask>> Prepare(ServedCell& cell,
                                                  const std::filesystem::path& folder);

 private:
  CellPreparer(PartFile parts, const Installation& installation, TaskSettings settings,
               RunObserver& observer)
      : parts_(std::move(parts)),
        installation_(installation),
        settings_(std::move(settings)),
        observer_(observer) {}

  // Whether all of `parts` are here; otherwise notes those that are not.
  absl::StatusOr<bool> HaveAll(const std::vector<std::string>& parts, ServedCell& cell) const;
  absl::Status ChooseRuntimes(const PackedCell& packed, const PackedCells& cells);

  PartFile parts_;
  const Installation& installation_;
  const TaskSettings settings_;
  RunObserver& observer_;
  std::unique_ptr<WorkRuntimes> runtimes_;
  std::unique_ptr<Placement> placement_;  // null until the runtime is known
};

}  // namespace bkm

#endif  // HARNESS_RAY_SERVED_CELL_H_
