// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_PREPARATION_H_
#define HARNESS_RUNNER_PREPARATION_H_

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/matrix/plan.h"
#include "harness/model/cuda_device.h"
#include "harness/runner/installation.h"
#include "harness/runner/observer.h"
#include "harness/runner/preparing_cells.h"
#include "harness/runner/runtime_preparation.h"
#include "harness/runner/runtime_provider.h"
#include "harness/runner/task.h"
#include "harness/source/source_catalog.h"
#include "harness/source/subject_resolver.h"

namespace bkm {

struct PreparationOptions {
  std::filesystem::path mirrors;  // folder of bare repositories NAME.git; may be empty
  // Relative paths in the matrix start here, and its runtimes/ comes first; may be empty.
  std::filesystem::path matrix_folder;
  RuntimeLimits limits = {};
  // False: the cells run on another machine. They get a lock and a probe, but no interpreter.
  bool environments = true;
  std::string sandbox = "full";  // the level of the sandbox that packages are built in
};

// The folder of a probe in `cache`, verified. A damaged one is reported and made again.
absl::StatusOr<std::filesystem::path> SoundProbeFolder(
    const Probe& probe, const std::filesystem::path& cache,
    const std::function<void(const std::string&)>& report);

// Puts what planned cells need into the cache: source trees, runtimes, probe folders. What is in
// the cache already costs nothing.
class Preparation : private CellSteps {
 public:
  static absl::StatusOr<std::unique_ptr<Preparation>> Create(const Matrix& matrix,
                                                             PreparationOptions options,
                                                             RunObserver& observer);

  // For ExpandMatrix. Valid while this object lives.
  PlanEnvironment Environment();

  // Prepares cells, in their order. A device that cannot run a cell, a subject whose content is at
  // fault, requirements that contradict each other, and an environment that cannot be installed are
  // the cell's result (`stopped`), not an error. So is a registry that does not answer for some of
  // the cells. A machine without network or disk is an error: the first one in the cells' order,
  // once everything that runs at once has ended. Cancelled: `stop` was true before all were
  // prepared.
  absl::StatusOr<std::vector<PreparedCell>> PrepareAll(const std::vector<PlannedCell>& plan,
                                                       const std::function<bool()>& stop);
  absl::StatusOr<PreparedCell> Prepare(const PlannedCell& planned);
  // The same in the background, while the first of them run. Subjects are resolved now.
  absl::StatusOr<std::unique_ptr<PreparingCells>> Begin(const std::vector<PlannedCell>& plan,
                                                        const std::function<bool()>& stop) {
    return PreparingCells::Begin(*this, runtimes_, plan, stop);
  }

  // As Prepare, but in the given runtime, even if the subjects' requirements do not allow it. The
  // cell's id should name the lock (Cell::lock).
  absl::StatusOr<PreparedCell> PrepareIn(const PlannedCell& planned, const RuntimeLock& lock);
  // The runtimes that PrepareAll would choose: equal requests have one.
  absl::StatusOr<std::map<std::string, Resolution>> ResolveAll(
      const std::vector<PlannedCell>& plan);
  // The runtime that Prepare would choose.
  Resolution LockOf(const PlannedCell& planned);
  // Whether `lock` meets the subjects' requirements.
  absl::StatusOr<bool> Allows(const PlannedCell& planned, const RuntimeLock& lock);

  GitSources& git() { return subjects_.git(); }
  const SourceCatalog& catalog() const { return catalog_; }

 private:
  Preparation(const Installation& installation, PreparationOptions options, RunObserver& observer,
              Uv uv, std::filesystem::path cache, std::filesystem::path python);

  absl::StatusOr<Subject> ResolveSubject(const SubjectSpec& spec);
  std::vector<std::filesystem::path> RuntimeFolders() const;
  absl::StatusOr<RuntimePolicy> PolicyOf(const std::string& runtime);
  // PlanEnvironment::runtime_with.
  absl::StatusOr<std::string> RuntimeWith(const std::string& runtime, const std::string& package);
  absl::StatusOr<PreparedCell> PrepareSubjects(const PlannedCell& planned) override;
  absl::StatusOr<RuntimeRequest> RequestOf(const PreparedCell& prepared) override;
  void UseLock(std::shared_ptr<const RuntimeLock> lock, PreparedCell& prepared) override;
  absl::Status Finish(const std::filesystem::path& python, PreparedCell& prepared) override;
  absl::StatusOr<std::vector<CudaDevice>> Devices();
  // The probe's folder, made if need be and verified once.
  absl::StatusOr<std::filesystem::path> FolderOf(const Probe& probe);

  const Installation installation_;
  const PreparationOptions options_;
  RunObserver& observer_;
  const std::filesystem::path cache_;
  SourceCatalog catalog_;
  SubjectResolver subjects_;
  UvRuntimeProvider provider_;
  LocksOnly locks_only_;
  const RealClock clock_;
  RuntimePreparation runtimes_;
  std::map<SubjectSpec, Subject> known_subjects_;
  std::map<std::string, RuntimePolicy> known_policies_;
  std::set<std::string> announced_;
  std::map<std::string, std::filesystem::path> probe_folders_;  // verified ones, by numerics
  std::optional<std::vector<CudaDevice>> devices_;  // this machine's, once a cell asks for one
  int memory_mib_ = 0;                              // the limit of a cell
};

}  // namespace bkm

#endif  // HARNESS_RUNNER_PREPARATION_H_
