// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_INSTALLATION_H_
#define HARNESS_RUNNER_INSTALLATION_H_

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace bkm {

// The paths of this build's programs and data.
struct Installation {
  std::filesystem::path root;  // the checkout (or a test's runfiles)
  std::filesystem::path bin;   // Bazel's bin folder: programs lie at their package's path below it

  // Uses $BKM_ROOT and $BKM_BIN, which the launcher sets, else the path of this program.
  static absl::StatusOr<Installation> Find();

  std::filesystem::path cell_worker() const { return bin / "harness/cell/cell_worker"; }
  std::filesystem::path python_worker() const { return bin / "harness/cell/python_worker"; }
  std::filesystem::path worker_library() const { return bin / "harness/cell/libbkm_worker.so"; }
  std::filesystem::path reference_worker() const {
    return bin / "harness/reference/reference_worker";
  }
  // Modules that a worker imports before it forks.
  std::filesystem::path preload() const {
    return root / "harness/cell/python/bkm_cell/preload.txt";
  }
  // Empty if they were not built.
  std::filesystem::path kernels() const;
  std::filesystem::path python_code() const { return root / "harness/cell/python"; }
  std::filesystem::path goldens() const { return root / "golden/numeric"; }
  std::filesystem::path catalogue() const { return root / "harness/selftest/catalogue.json"; }
  std::filesystem::path harmless() const { return root / "harness/selftest/harmless.json"; }
  std::filesystem::path mutations() const { return root / "harness/selftest/mutations.json"; }
  std::filesystem::path detections() const { return root / "golden/detection"; }
  std::filesystem::path matrices() const { return root / "matrices"; }
  std::filesystem::path runtimes() const { return root / "matrices/runtimes"; }

  // Whether the launcher still builds the reference worker: the file that $BKM_BUILDING names is
  // locked until that has ended (build_beside of tools/bkm). FailedPrecondition: the build failed.
  static absl::StatusOr<bool> IsBuilding();
  // NotFound, with what to do, if the programs that run cells are not built.
  absl::Status CheckBuilt() const;

  // Hash of all our code that runs inside a cell: the worker, the kernels and the Python code. It
  // is part of the identity of every observation.
  absl::StatusOr<std::string> CellCodeDigest() const;
};

// Whether `python`, of that version ("3.11"), becomes the worker itself (cell_worker --alone):
// python_worker embeds another version, or the interpreter has no libpython.
bool RunsAlone(const std::filesystem::path& python, const std::string& version);

// The interpreter that cells embed: $BKM_PYTHON, else the system's.
std::filesystem::path CellPython();

}  // namespace bkm

#endif  // HARNESS_RUNNER_INSTALLATION_H_
