// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/preparation.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/model/dimension.h"
#include "harness/model/engine_kind.h"
#include "harness/numerics/probe_folder.h"
#include "harness/report/labels.h"
#include "harness/runner/devices.h"
#include "harness/store/checksums.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

constexpr auto kNever = [] { return false; };

// How long to wait for a result before looking for an interrupt.
constexpr absl::Duration kPatience = absl::Milliseconds(100);

}  // namespace

absl::StatusOr<fs::path> SoundProbeFolder(const Probe& probe, const fs::path& cache,
                                          const std::function<void(const std::string&)>& report) {
  ASSIGN_OR_RETURN(fs::path folder, WriteProbeFolder(probe, cache));
  const absl::Status sound = VerifyManifest(folder);
  if (sound.ok()) return folder;
  if (absl::IsDataLoss(sound)) {
    report(absl::StrCat(sound.message(), ": making the probe again"));
    RETURN_IF_ERROR(SetAside(folder).status());
    ASSIGN_OR_RETURN(folder, WriteProbeFolder(probe, cache));
  }
  RETURN_IF_ERROR(WriteManifest(folder));
  return folder;
}

Preparation::Preparation(const Installation& installation, PreparationOptions options,
                         RunObserver& observer, Uv uv, fs::path cache, fs::path python)
    : installation_(installation),
      options_(std::move(options)),
      observer_(observer),
      cache_(cache),
      subjects_(catalog_, uv,
                {.cache = cache,
                 .mirrors = options_.mirrors,
                 .python = python,
                 .folder = options_.matrix_folder,
                 .report = [&observer](const std::string& what) { observer.OnWarning(what); }}),
      provider_(catalog_, uv, cache, python,
                [&observer](const std::string& what) { observer.OnWarning(what); }),
      locks_only_(provider_),
      runtimes_(options_.environments ? static_cast<RuntimeProvider&>(provider_) : locks_only_,
                observer, clock_, options_.limits) {}

absl::StatusOr<std::unique_ptr<Preparation>> Preparation::Create(const Matrix& matrix,
                                                                 PreparationOptions options,
                                                                 RunObserver& observer) {
  ASSIGN_OR_RETURN(const Installation installation, Installation::Find());
  ASSIGN_OR_RETURN(Uv uv, Uv::Find());
  uv.BuildIn({installation.cell_worker(), options.sandbox});
  std::unique_ptr<Preparation> preparation(new Preparation(
      installation, std::move(options), observer, uv, CacheDirectory(), CellPython()));
  preparation->memory_mib_ = matrix.limits.memory_mib;
  RETURN_IF_ERROR(preparation->catalog_.Add(matrix.sources, matrix.origin, "$.sources"));
  return preparation;
}

PlanEnvironment Preparation::Environment() {
  PlanEnvironment environment{
      .resolve = [this](const SubjectSpec& spec) { return ResolveSubject(spec); },
      .torch_of_runtime = [this](const std::string& runtime) -> absl::StatusOr<std::string> {
        ASSIGN_OR_RETURN(const RuntimePolicy policy, PolicyOf(runtime));
        return policy.torch;
      },
      .runtime_with = [this](const std::string& runtime,
                             const std::string& package) { return RuntimeWith(runtime, package); }};
  if (options_.environments) environment.devices = [this] { return Devices(); };
  return environment;
}

absl::StatusOr<std::vector<CudaDevice>> Preparation::Devices() {
  if (!devices_) {
    ASSIGN_OR_RETURN(devices_, FindDevices());
  }
  return *devices_;
}

absl::StatusOr<Subject> Preparation::ResolveSubject(const SubjectSpec& spec) {
  const auto known = known_subjects_.find(spec);
  if (known != known_subjects_.end()) return known->second;
  ASSIGN_OR_RETURN(const Subject subject, subjects_.Resolve(spec));
  // Folders and full commit ids are not resolved: there is nothing to report.
  const bool exact_commit = spec.source == SourceKind::kGit && spec == subject.spec;
  if (spec.source != SourceKind::kPath && !exact_commit) {
    observer_.OnSetUp(absl::StrCat("source ", spec.ToString(), ": ", subject.spec.ToString(),
                                   subject.date.empty() ? "" : " of ", subject.date));
  }
  known_subjects_.emplace(spec, subject);
  // Preparing the cell asks for the resolved spec again.
  known_subjects_.emplace(subject.spec, subject);
  return subject;
}

std::vector<fs::path> Preparation::RuntimeFolders() const {
  std::vector<fs::path> folders = {installation_.runtimes()};
  if (!options_.matrix_folder.empty())
    folders.insert(folders.begin(), options_.matrix_folder / "runtimes");
  return folders;
}

absl::StatusOr<std::string> Preparation::RuntimeWith(const std::string& runtime,
                                                     const std::string& package) {
  ASSIGN_OR_RETURN(const RuntimePolicy asked, PolicyOf(runtime));
  const auto chooses = [](const RuntimePolicy& policy) {
    return policy.policy == PolicyKind::kAsOf || policy.policy == PolicyKind::kNewest;
  };
  if (!chooses(asked) || Brings(asked, package)) return runtime;
  for (const std::string& name : RuntimePolicyNames(RuntimeFolders())) {
    const absl::StatusOr<RuntimePolicy> other = PolicyOf(name);
    // A broken policy that nobody asked for stops nobody.
    if (other.ok() && Brings(*other, package) && other->policy == asked.policy &&
        other->python == asked.python && other->torch == asked.torch &&
        other->torch_backend == asked.torch_backend && other->day == asked.day)
      return name;
  }
  return std::string();
}

absl::StatusOr<RuntimePolicy> Preparation::PolicyOf(const std::string& runtime) {
  const auto known = known_policies_.find(runtime);
  if (known != known_policies_.end()) return known->second;
  ASSIGN_OR_RETURN(const RuntimePolicy policy, ReadRuntimePolicy(RuntimeFolders(), runtime));
  known_policies_.emplace(runtime, policy);
  return policy;
}

absl::StatusOr<RuntimeRequest> Preparation::RequestOf(const PreparedCell& prepared) {
  const Cell& cell = prepared.record.cell;
  const EngineKind& kind = *FindEngineKind(cell.engine);
  RuntimeRequest request;
  ASSIGN_OR_RETURN(request.policy, PolicyOf(cell.runtime));
  request.torch = cell.torch;
  request.engine = prepared.engine ? &*prepared.engine : nullptr;
  request.library = prepared.library ? &*prepared.library : nullptr;
  request.relax = cell.relax;
  if (kind.library_in_runtime && !prepared.library) request.extra = {kind.library_source};
  return request;
}

void Preparation::UseLock(std::shared_ptr<const RuntimeLock> lock, PreparedCell& prepared) {
  const Cell& cell = prepared.record.cell;
  const EngineKind& kind = *FindEngineKind(cell.engine);
  prepared.record.lock = lock->Key();
  if (kind.library_in_runtime)
    prepared.record.library_version = lock->VersionOf(kind.library_source);
  if (announced_.insert(prepared.record.lock).second) {
    observer_.OnSetUp(
        absl::StrCat("runtime ", cell.runtime, " ", prepared.record.lock.substr(0, 12), ": ",
                     lock->packages.size(), " packages",
                     lock->cutoff.empty() ? "" : absl::StrCat(" as of ", lock->cutoff)));
  }
  prepared.lock = std::move(lock);
}

absl::StatusOr<PreparedCell> Preparation::PrepareSubjects(const PlannedCell& planned) {
  PreparedCell prepared;
  prepared.record.cell = planned.cell;
  prepared.record.id = planned.id;
  prepared.record.dir = CellDirectory(planned.cell, planned.id);
  if (planned.cell.engine_subject) {
    ASSIGN_OR_RETURN(prepared.engine, ResolveSubject(*planned.cell.engine_subject));
    prepared.record.engine_date = prepared.engine->date;
    ASSIGN_OR_RETURN(prepared.engine_listing, subjects_.Listing(*prepared.engine));
  }
  if (planned.cell.library_subject) {
    ASSIGN_OR_RETURN(prepared.library, ResolveSubject(*planned.cell.library_subject));
    prepared.record.library_date = prepared.library->date;
    ASSIGN_OR_RETURN(prepared.library_listing, subjects_.Listing(*prepared.library));
  }
  for (const std::optional<Subject>& subject : {prepared.engine, prepared.library}) {
    if (!subject || !subject->fault || prepared.stopped) continue;
    StopCell(prepared, StageOf(subject->fault->ending), subject->fault->ending,
             absl::StrCat(subject->spec.name, " ", subject->label, ": ", subject->fault->message));
  }
  if (prepared.stopped) return prepared;
  if (!planned.not_offered.empty()) {
    StopCell(prepared, Stage::kConstruct, EndingKind::kNotOffered, planned.not_offered);
  } else if (!planned.unsupported.empty()) {
    StopCell(prepared, Stage::kBackend, EndingKind::kDeviceMissing, planned.unsupported);
  } else if (!planned.statically_red.empty()) {
    StopCell(prepared, Stage::kImport, EndingKind::kApiCheck, planned.statically_red);
  }
  return prepared;
}

absl::Status Preparation::Finish(const fs::path& python, PreparedCell& prepared) {
  prepared.worker.python = python;
  prepared.worker.alone = options_.environments && RunsAlone(python, prepared.lock->python);
  prepared.worker.key = prepared.record.lock;
  const EngineKind& kind = *FindEngineKind(prepared.record.cell.engine);
  // A library that is installed in the runtime has no tree on the cell's path.
  if (kind.library_in_runtime) prepared.library.reset();
  const Probe& probe = prepared.record.cell.probe;
  if (probe.device != "cpu" && options_.environments) {
    const std::string why = WhyTorchCannot(probe, prepared.lock->VersionOf("torch"));
    if (!why.empty()) {
      StopCell(prepared, Stage::kBackend, EndingKind::kDeviceMissing, why);
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const std::vector<CudaDevice> devices, Devices());
    UseDevices(devices, memory_mib_, prepared);
  }
  if (kind.judged_by_ending_only) return absl::OkStatus();
  ASSIGN_OR_RETURN(prepared.probe_folder, FolderOf(probe));
  const Probe of_control = ProbeOfControl(probe);
  if (!kind.control.empty() && NumericsOf(of_control) != NumericsOf(probe)) {
    ASSIGN_OR_RETURN(prepared.control_probe_folder, FolderOf(of_control));
  }
  return absl::OkStatus();
}

absl::StatusOr<fs::path> Preparation::FolderOf(const Probe& probe) {
  fs::path& folder = probe_folders_[NumericsOf(probe).dump()];
  if (folder.empty()) {
    ASSIGN_OR_RETURN(folder, SoundProbeFolder(probe, cache_, [this](const std::string& what) {
                       observer_.OnWarning(what);
                     }));
  }
  return folder;
}

absl::StatusOr<std::vector<PreparedCell>> Preparation::PrepareAll(
    const std::vector<PlannedCell>& plan, const std::function<bool()>& stop) {
  ASSIGN_OR_RETURN(const std::unique_ptr<PreparingCells> cells, Begin(plan, stop));
  while (!cells->done()) {
    if (stop()) return absl::CancelledError("interrupted");
    RETURN_IF_ERROR(cells->TakeWithin(kPatience).status());
  }
  return cells->cells();
}

absl::StatusOr<PreparedCell> Preparation::Prepare(const PlannedCell& planned) {
  ASSIGN_OR_RETURN(std::vector<PreparedCell> cells, PrepareAll({planned}, kNever));
  return std::move(cells[0]);
}

absl::StatusOr<PreparedCell> Preparation::PrepareIn(const PlannedCell& planned,
                                                    const RuntimeLock& lock) {
  ASSIGN_OR_RETURN(PreparedCell prepared, PrepareSubjects(planned));
  if (prepared.stopped) return prepared;
  UseLock(std::make_shared<const RuntimeLock>(lock), prepared);
  runtimes_.CreateEnvironment(prepared.lock);
  while (!runtimes_.environment(prepared.record.lock)) runtimes_.Advance(kPatience);
  const absl::StatusOr<fs::path>& python = *runtimes_.environment(prepared.record.lock);
  if (absl::IsAborted(python.status())) {
    StopCell(prepared, Stage::kInstall, EndingKind::kInstallFailed, python.status().message());
    return prepared;
  }
  RETURN_IF_ERROR(python.status());
  RETURN_IF_ERROR(Finish(*python, prepared));
  return prepared;
}

absl::StatusOr<std::map<std::string, Resolution>> Preparation::ResolveAll(
    const std::vector<PlannedCell>& plan) {
  std::map<std::string, Resolution> resolutions;
  std::vector<std::string> keys;
  for (const PlannedCell& planned : plan) {
    ASSIGN_OR_RETURN(const PreparedCell cell, PrepareSubjects(planned));
    ASSIGN_OR_RETURN(const RuntimeRequest request, RequestOf(cell));
    keys.push_back(runtimes_.Resolve(request));
  }
  while (runtimes_.resolving()) runtimes_.Advance(kPatience);
  for (const std::string& key : keys) resolutions.emplace(key, *runtimes_.resolution(key));
  return resolutions;
}

Resolution Preparation::LockOf(const PlannedCell& planned) {
  ASSIGN_OR_RETURN(const auto resolutions, ResolveAll({planned}));
  return resolutions.begin()->second;
}

absl::StatusOr<bool> Preparation::Allows(const PlannedCell& planned, const RuntimeLock& lock) {
  ASSIGN_OR_RETURN(const PreparedCell prepared, PrepareSubjects(planned));
  ASSIGN_OR_RETURN(const RuntimeRequest request, RequestOf(prepared));
  return provider_.resolver().Allows(request, lock);
}

}  // namespace bkm
