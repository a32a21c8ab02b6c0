// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/bundle/work_runtimes.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/embedded_python.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/model/engine_kind.h"
#include "harness/runner/installation.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

}  // namespace

absl::StatusOr<std::unique_ptr<WorkRuntimes>> WorkRuntimes::Create(const fs::path& python,
                                                                   fs::path cell_worker,
                                                                   std::string sandbox,
                                                                   Report report) {
  std::unique_ptr<WorkRuntimes> runtimes(
      new WorkRuntimes(std::move(cell_worker), std::move(sandbox), std::move(report)));
  if (python.empty()) return runtimes;
  ASSIGN_OR_RETURN(runtimes->user_,
                   UserEnvironment::Read(FindNamedPython(python), runtimes->catalog_));
  return runtimes;
}

absl::StatusOr<std::shared_ptr<const RuntimeLock>> WorkRuntimes::LockFor(
    const PackedCell& cell, const PackedCells& cells) const {
  const std::shared_ptr<const RuntimeLock> packed = cells.LockOf(cell);
  if (!user_) {
    // A bundle must not choose which of this machine's programs are started.
    if (packed->policy == "existing") {
      return absl::FailedPreconditionError(
          absl::StrCat("its runtime ", packed->runtime,
                       " is an interpreter of the machine that packed it: name one with --python"));
    }
    return packed;
  }
  auto lock = std::make_shared<const RuntimeLock>(user_->LockAs(packed->runtime));
  if (lock->Key() == packed->Key()) return lock;
  const std::string python = user_->python().string();
  if (!cell.record.cell.torch.empty() && lock->VersionOf("torch").empty())
    return absl::FailedPreconditionError(absl::StrCat(python, " has no torch installed"));
  const EngineKind& kind = *FindEngineKind(cell.record.cell.engine);
  if (!kind.library_in_runtime) return lock;
  const std::string has = lock->VersionOf(kind.library_source);
  if (has.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(python, " has no ", kind.library_source, " installed"));
  }
  const std::optional<SubjectSpec>& asked = cell.record.cell.library_subject;
  if (asked && asked->source == SourceKind::kPypi && asked->revision != has) {
    return absl::FailedPreconditionError(absl::StrCat(
        "it asks for ", kind.library_source, " ", asked->revision, ", and ", python, " has ", has));
  }
  return lock;
}

absl::StatusOr<fs::path> WorkRuntimes::Environment(const RuntimeLock& lock) {
  const std::string version = EmbeddedPythonVersion();
  if (lock.python != version) {
    return absl::FailedPreconditionError(
        absl::StrCat("its runtime is of Python ", lock.python, ", and this bkm makes environments ",
                     "of Python ", version, ": name an interpreter with --python"));
  }
  if (!provider_) {
    ASSIGN_OR_RETURN(Uv uv, Uv::Find());
    uv.BuildIn({cell_worker_, sandbox_});
    provider_ =
        std::make_unique<UvRuntimeProvider>(catalog_, uv, CacheDirectory(), CellPython(), report_);
  }
  if (const std::optional<fs::path> python = provider_->FindEnvironment(lock)) return *python;
  report_(absl::StrCat("creating the environment of runtime ", lock.runtime, " (",
                       lock.packages.size(), " packages)"));
  return provider_->CreateEnvironment(lock);
}

absl::StatusOr<WorkerSetup> WorkRuntimes::WorkerFor(const RuntimeLock& lock) {
  const std::string key = lock.Key();
  if (user_) return user_->Worker(key);
  const auto known = workers_.find(key);
  if (known != workers_.end()) return known->second;
  absl::StatusOr<WorkerSetup> worker = absl::UnknownError("");
  if (const absl::StatusOr<fs::path> python = Environment(lock); python.ok()) {
    worker = WorkerSetup{.key = key, .python = *python, .alone = RunsAlone(*python, lock.python)};
  } else {
    worker = python.status();
  }
  return workers_.emplace(key, std::move(worker)).first->second;
}

}  // namespace bkm
