// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BUNDLE_PLACEMENT_H_
#define HARNESS_BUNDLE_PLACEMENT_H_

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/files.h"
#include "harness/bundle/packed_cells.h"
#include "harness/bundle/part_file.h"
#include "harness/bundle/work_runtimes.h"
#include "harness/model/cuda_device.h"
#include "harness/runner/observer.h"
#include "harness/runner/task.h"
#include "harness/store/folder_cache.h"

namespace bkm {

// Puts what packed cells need onto this machine. An error is one sentence that says why this
// machine cannot run the cell; DataLoss: the parts are damaged.
class Placement {
 public:
  // `parts` has the content of the trees. All must outlive this.
  Placement(const PartFile& parts, WorkRuntimes& runtimes, RunObserver& observer)
      : parts_(parts),
        runtimes_(runtimes),
        observer_(observer),
        trees_(CacheDirectory() / "trees",
               [this](const std::string& what) { observer_.OnWarning(what); }) {}

  // The cell as it runs here; no paths yet. An error is one sentence that says why this machine
  // cannot run it.
  absl::StatusOr<PreparedCell> Choose(const PackedCell& packed, const PackedCells& cells);
  // The parts that Place() reads, except those of trees that are here.
  std::vector<std::string> PartsToPlace(const PackedCell& packed, const PackedCells& cells,
                                        const PreparedCell& cell);
  // This machine's CUDA devices, asked for once.
  const absl::StatusOr<std::vector<CudaDevice>>& Devices();
  // Adds the paths.
  absl::Status Place(const PackedCell& packed, const PackedCells& cells, PreparedCell& cell);

 private:
  absl::Status PlaceSubject(const std::optional<PackedSubject>& packed, const PackedCells& cells,
                            const std::filesystem::path& python, const RuntimeLock& lock,
                            std::optional<Subject>& subject);
  // The tree where bkm itself would put it, if it is there and equal file by file. Messages of
  // cells contain paths: so they are those of a run on this machine.
  std::optional<std::filesystem::path> OwnTree(const PackedSubject& packed,
                                               const PackedCells& cells);
  // Draws the probe, which is a function of its numbers, and compares its files with those of the
  // machine that packed it.
  absl::Status PlaceProbe(const PackedCell& packed, const PackedCells& cells, PreparedCell& cell);

  absl::Status CheckDevices(const Probe& probe, const RuntimeLock& lock);

  const PartFile& parts_;
  WorkRuntimes& runtimes_;
  RunObserver& observer_;
  const FolderCache trees_;
  std::map<std::string, std::optional<std::filesystem::path>> own_;  // by home and part
  std::map<std::string, std::filesystem::path> probes_;              // by name
  std::optional<absl::StatusOr<std::vector<CudaDevice>>> devices_;
};

}  // namespace bkm

#endif  // HARNESS_BUNDLE_PLACEMENT_H_
