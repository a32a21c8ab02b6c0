// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/preparation.h"

#include <algorithm>
#include <deque>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/model/engine_kind.h"
#include "harness/numerics/probe_folder.h"
#include "harness/report/labels.h"
#include "harness/store/checksums.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

constexpr auto kNever = [] { return false; };

// The observation of a cell that ended before its process was started.
Json StoppedAt(const char* stage, const std::string& kind, const std::string& message) {
  return {{"schema", 1},
          {"stages", {{{"stage", stage}}}},
          {"ending", {{"kind", kind}, {"message", message}}}};
}

// The stage in which a cell of a faulty subject stops.
const char* StageOf(const std::string& ending) {
  return ending == "install-failed" ? "install" : "resolve";
}

// Whether the network failed for some of `results` only. Then it is the result of these cells: a
// subject may ask for a package that the registry cannot give.
template <typename Map>
bool SomeAreReachable(const Map& results) {
  return std::any_of(results.begin(), results.end(),
                     [](const auto& result) { return result.second.ok(); });
}

}  // namespace

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
      runtimes_(provider_, observer, clock_, options_.limits) {}

absl::StatusOr<std::unique_ptr<Preparation>> Preparation::Create(const Matrix& matrix,
                                                                 PreparationOptions options,
                                                                 RunObserver& observer) {
  ASSIGN_OR_RETURN(const Installation installation, Installation::Find());
  ASSIGN_OR_RETURN(Uv uv, Uv::Find());
  uv.BuildIn({installation.cell_worker(), options.sandbox});
  std::unique_ptr<Preparation> preparation(new Preparation(
      installation, std::move(options), observer, uv, CacheDirectory(), CellPython()));
  RETURN_IF_ERROR(preparation->catalog_.Add(matrix.sources, matrix.name, "$.sources"));
  return preparation;
}

PlanEnvironment Preparation::Environment() {
  return {.resolve = [this](const SubjectSpec& spec) { return ResolveSubject(spec); },
          .torch_of_runtime = [this](const std::string& runtime) -> absl::StatusOr<std::string> {
            ASSIGN_OR_RETURN(const RuntimePolicy policy, PolicyOf(runtime));
            return policy.torch;
          }};
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

absl::StatusOr<RuntimePolicy> Preparation::PolicyOf(const std::string& runtime) {
  const auto known = known_policies_.find(runtime);
  if (known != known_policies_.end()) return known->second;
  std::vector<fs::path> folders = {installation_.runtimes()};
  if (!options_.matrix_folder.empty())
    folders.insert(folders.begin(), options_.matrix_folder / "runtimes");
  ASSIGN_OR_RETURN(const RuntimePolicy policy, ReadRuntimePolicy(folders, runtime));
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

absl::Status Preparation::ChooseRuntimes(const Cells& cells, const std::function<bool()>& stop) {
  std::vector<RuntimeRequest> requests;
  for (const PreparedCell* cell : cells) {
    ASSIGN_OR_RETURN(requests.emplace_back(), RequestOf(*cell));
  }
  const Resolutions resolutions = runtimes_.Resolve(requests, stop);
  const bool reachable = SomeAreReachable(resolutions.by_key);
  for (const std::string& key : resolutions.keys) {
    const absl::Status& status = resolutions.by_key.at(key).status();
    if (!absl::IsUnavailable(status) || !reachable) RETURN_IF_ERROR(status);
  }
  std::map<std::string, std::shared_ptr<const RuntimeLock>> locks;  // by key of the resolution
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string& key = resolutions.keys[i];
    if (const absl::Status& status = resolutions.by_key.at(key).status(); !status.ok()) {
      cells[i]->stopped =
          StoppedAt("resolve", "registry-unreachable", std::string(status.message()));
      continue;
    }
    const auto& resolution = *resolutions.by_key.at(key);
    if (const auto* conflict = std::get_if<NoSolution>(&resolution)) {
      const NoSolution own = NoSolutionOf(requests[i], conflict->complaint);
      cells[i]->stopped =
          StoppedAt(StageOf(conflict->ending), conflict->ending.c_str(), own.message);
      continue;
    }
    std::shared_ptr<const RuntimeLock>& lock = locks[key];
    if (!lock) lock = std::make_shared<const RuntimeLock>(std::get<RuntimeLock>(resolution));
    UseLock(lock, *cells[i]);
  }
  return absl::OkStatus();
}

absl::Status Preparation::CreateEnvironments(const Cells& cells,
                                             const std::function<bool()>& stop) {
  std::vector<const RuntimeLock*> locks;
  for (const PreparedCell* cell : cells) {
    if (cell->lock) locks.push_back(cell->lock.get());
  }
  const auto environments = runtimes_.CreateEnvironments(locks, stop);
  const bool reachable = SomeAreReachable(environments);
  for (PreparedCell* cell : cells) {
    if (!cell->lock) continue;
    const absl::StatusOr<fs::path>& environment = environments.at(cell->record.lock);
    if (absl::IsAborted(environment.status())) {
      // A package that does not build is a fault of the lock, not of this machine.
      cell->stopped =
          StoppedAt("install", "install-failed", std::string(environment.status().message()));
      continue;
    }
    if (absl::IsUnavailable(environment.status()) && reachable) {
      cell->stopped =
          StoppedAt("install", "registry-unreachable", std::string(environment.status().message()));
      continue;
    }
    RETURN_IF_ERROR(environment.status());
    cell->worker.python = *environment;
    cell->worker.key = cell->record.lock;
  }
  return absl::OkStatus();
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
    prepared.stopped = StoppedAt(
        StageOf(subject->fault->ending), subject->fault->ending.c_str(),
        absl::StrCat(subject->spec.name, " ", subject->label, ": ", subject->fault->message));
  }
  if (prepared.stopped) return prepared;
  if (!planned.not_offered.empty()) {
    prepared.stopped = StoppedAt("construct", "not-offered", planned.not_offered);
  } else if (!planned.unsupported.empty()) {
    prepared.stopped = StoppedAt("backend", "device-missing", planned.unsupported);
  } else if (!planned.statically_red.empty()) {
    prepared.stopped = StoppedAt("import", "api-check", planned.statically_red);
  }
  return prepared;
}

absl::Status Preparation::Finish(PreparedCell& prepared) {
  const EngineKind& kind = *FindEngineKind(prepared.record.cell.engine);
  // A library that is installed in the runtime has no tree on the cell's path.
  if (kind.library_in_runtime) prepared.library.reset();
  if (kind.judged_by_ending_only) return absl::OkStatus();
  ASSIGN_OR_RETURN(prepared.probe_folder, SoundProbeFolder(prepared.record.cell.probe));
  return absl::OkStatus();
}

absl::StatusOr<fs::path> Preparation::SoundProbeFolder(const Probe& probe) {
  ASSIGN_OR_RETURN(fs::path folder, WriteProbeFolder(probe, cache_));
  if (!verified_probes_.insert(folder).second) return folder;
  const absl::Status sound = VerifyManifest(folder);
  if (sound.ok()) return folder;
  if (absl::IsDataLoss(sound)) {
    observer_.OnWarning(absl::StrCat(sound.message(), ": making the probe again"));
    RETURN_IF_ERROR(SetAside(folder).status());
    ASSIGN_OR_RETURN(folder, WriteProbeFolder(probe, cache_));
  }
  RETURN_IF_ERROR(WriteManifest(folder));
  return folder;
}

absl::StatusOr<std::vector<PreparedCell>> Preparation::PrepareAll(
    const std::vector<PlannedCell>& plan, const std::function<bool()>& stop) {
  std::vector<PreparedCell> cells;
  for (const PlannedCell& planned : plan) {
    if (stop()) return absl::CancelledError("interrupted");
    ASSIGN_OR_RETURN(cells.emplace_back(), PrepareSubjects(planned));
  }
  Cells to_run;
  for (PreparedCell& cell : cells) {
    if (!cell.stopped) to_run.push_back(&cell);
  }
  RETURN_IF_ERROR(ChooseRuntimes(to_run, stop));
  RETURN_IF_ERROR(CreateEnvironments(to_run, stop));
  for (PreparedCell* cell : to_run) RETURN_IF_ERROR(Finish(*cell));
  return cells;
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
  RETURN_IF_ERROR(CreateEnvironments({&prepared}, kNever));
  RETURN_IF_ERROR(Finish(prepared));
  return prepared;
}

absl::StatusOr<Resolutions> Preparation::ResolveAll(const std::vector<PlannedCell>& plan,
                                                    const std::function<bool()>& stop) {
  std::deque<PreparedCell> cells;  // the requests point into them
  std::vector<RuntimeRequest> requests;
  for (const PlannedCell& planned : plan) {
    ASSIGN_OR_RETURN(cells.emplace_back(), PrepareSubjects(planned));
    ASSIGN_OR_RETURN(requests.emplace_back(), RequestOf(cells.back()));
  }
  return runtimes_.Resolve(requests, stop);
}

Resolution Preparation::LockOf(const PlannedCell& planned) {
  ASSIGN_OR_RETURN(const Resolutions resolutions, ResolveAll({planned}, kNever));
  return resolutions.by_key.at(resolutions.keys[0]);
}

absl::StatusOr<bool> Preparation::Allows(const PlannedCell& planned, const RuntimeLock& lock) {
  ASSIGN_OR_RETURN(const PreparedCell prepared, PrepareSubjects(planned));
  ASSIGN_OR_RETURN(const RuntimeRequest request, RequestOf(prepared));
  return provider_.resolver().Allows(request, lock);
}

}  // namespace bkm
