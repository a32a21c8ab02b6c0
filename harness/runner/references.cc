// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/references.h"

#include <signal.h>
#include <sys/wait.h>
#include <sysexits.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/judge/reference_data.h"
#include "harness/numerics/golden_key.h"
#include "harness/numerics/reductions.h"
#include "harness/store/checksums.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

constexpr int kTriesIfKilled = 3;

// What the floors of a probe have in common in all precisions.
std::string FloorKind(const Probe& probe) { return FloorFile(probe, "any"); }

// Says in one sentence why the worker could not compute `file`.
fs::path FailureOf(const fs::path& file) { return absl::StrCat(file.string(), ".failure"); }

absl::Status CopyInto(const fs::path& from, const fs::path& to) {
  ASSIGN_OR_RETURN(const std::string content, ReadFile(from));
  RETURN_IF_ERROR(WriteFile(to, content));
  RETURN_IF_ERROR(RemoveTree(FailureOf(to)));
  return SealFile(to);
}

// The version of LibTorch that `worker` is linked to. A worker that does not run reports that when
// it is needed.
std::string TorchOf(const std::string& worker) {
  const absl::StatusOr<std::string> version =
      RunForOutput({.argv = {worker, "--torch-version"}, .may_run_again = true});
  return version.ok() ? std::string(absl::StripAsciiWhitespace(*version)) : "unknown";
}

}  // namespace

std::string GoldenFile(const Probe& probe) {
  return absl::StrCat(GoldenKey(probe), ".safetensors");
}
std::string FloorFile(const Probe& probe, const std::string& precision) {
  const std::string divided = ReductionsText(ReductionsOf(probe.layout));
  return absl::StrCat(GoldenKey(probe), "-", precision, divided.empty() ? "" : "-", divided,
                      ".floor.json");
}
std::string ProbeKey(const Probe& probe) { return GoldenKey(probe); }

absl::Status LackOf(const fs::path& file) {
  std::error_code error;
  if (fs::exists(file, error)) return absl::OkStatus();
  if (absl::StatusOr<std::string> why = ReadFile(FailureOf(file)); why.ok())
    return absl::FailedPreconditionError(*why);
  return absl::UnavailableError(
      absl::StrCat(file.string(), " is missing; the same bkm run computes it"));
}

References::~References() {
  for (const Running& running : running_) ::kill(-running.process.pid, SIGKILL);
  for (const Running& running : running_) ::waitpid(running.process.pid, nullptr, 0);
}

absl::Status References::Want(const Probe& probe, const fs::path& probe_folder,
                              const std::string& precision) {
  const std::string golden = GoldenFile(probe);
  const std::string floor = FloorFile(probe, precision);
  const std::string worker = installation_.reference_worker().string();
  if (!libtorch_version_.empty()) {
    torch_ = libtorch_version_;
    libtorch_ = FindLibTorch(cache_, libtorch_version_);
  }
  // `job` lacks what follows from the file: where it is made, wanted and logged.
  const auto want = [&](const std::string& file, std::vector<fs::path> sources, Job job) {
    if (!asked_.insert(file).second || IsSound(run_.reference(file))) return absl::OkStatus();
    for (const fs::path& source : sources) {
      if (IsSound(source)) return CopyInto(source, run_.reference(file));
    }
    if (!HasWorker()) return absl::OkStatus();
    if (!libtorch_.empty()) job.command.set_env["LD_LIBRARY_PATH"] = libtorch_;
    job.made = sources[0];
    job.wanted = run_.reference(file);
    job.log = run_.worker_log(absl::StrCat("reference-", file));
    jobs_.push_back(std::move(job));
    return CreateDirectories(sources[0].parent_path());
  };
  RETURN_IF_ERROR(CopyProbe(probe_folder, run_.probe(ProbeKey(probe))));
  const fs::path made_golden = cache_ / "references" / golden;
  ASSIGN_OR_RETURN(const std::string cpu, CpuFeatures());
  if (torch_.empty()) torch_ = TorchOf(worker);
  const fs::path made_floor =
      cache_ / "references" / absl::StrCat(FloorKey(probe, precision, cpu, torch_), ".json");
  RETURN_IF_ERROR(want(golden, {made_golden, installation_.goldens() / golden},
                       {.serves = ProbeKey(probe),
                        .command = {.argv = {worker, "golden", "--probe", probe_folder.string(),
                                             "--out", made_golden.string()}},
                        .what = "the golden"}));
  std::vector<fs::path> floors = {made_floor};
  if (!libtorch_version_.empty() && libtorch_.empty())
    floors.push_back(installation_.goldens() / floor);
  return want(
      floor, floors,
      {.serves = FloorKind(probe),
       .needs = ProbeKey(probe),
       .command = {.argv = {worker, "floor", "--probe", probe_folder.string(), "--golden",
                            run_.reference(golden).string(), "--precision", precision, "--layout",
                            LayoutText(probe.layout), "--out", made_floor.string()}},
       .what = absl::StrCat("the ", precision, " floor")});
}

bool References::IsMaking(const Probe& probe) const {
  return IsMaking(ProbeKey(probe)) || IsMaking(FloorKind(probe));
}

absl::Status References::CopyProbe(const fs::path& from, const fs::path& to) {
  if (!asked_.insert(to.string()).second) return absl::OkStatus();
  const absl::Status sound = VerifyManifest(to);
  if (absl::IsDataLoss(sound)) {
    damaged_.push_back(absl::StrCat(sound.message(), ": copying it again"));
    RETURN_IF_ERROR(SetAside(to).status());
  }
  RETURN_IF_ERROR(CopyReferenceData(from, to));
  return sound.ok() ? absl::OkStatus() : WriteManifest(to);
}

bool References::IsSound(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return false;
  const absl::Status sound = VerifySealedFile(path);
  if (!absl::IsDataLoss(sound)) return true;
  damaged_.push_back(absl::StrCat(sound.message(), ": making it again"));
  SetAside(path).status().IgnoreError();
  return false;
}

bool References::HasWorker() {
  if (libtorch_version_.empty() || !libtorch_.empty()) return true;
  if (!failure_.empty()) return false;  // once is enough
  absl::StatusOr<fs::path> fetched = FetchLibTorch(cache_, libtorch_version_, CellPython(), note_);
  if (fetched.ok()) {
    libtorch_ = *std::move(fetched);
  } else {
    failure_ = absl::StrCat(
        "goldens and floors that did not come with bkm need LibTorch: ", fetched.status().message(),
        " (set UV_FIND_LINKS to a folder with its wheel, or bring the network "
        "up, and give the same command again)");
  }
  return failure_.empty();
}

void References::Finish(Job job, int status) {
  // From outside: the machine lacks memory, or a person ended it.
  const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  if (killed && ++job.killed < kTriesIfKilled) {
    jobs_.push_front(std::move(job));
    return;
  }
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code != 0) {
    GiveUp(job, absl::StrCat("see ", job.log.string()));
    // What the machine failed at can succeed the next time.
    if (!killed && code != EX_TEMPFAIL) WriteFile(FailureOf(job.wanted), failure_).IgnoreError();
    return;
  }
  absl::Status copied = SealFile(job.made);
  if (copied.ok()) copied = CopyInto(job.made, job.wanted);
  if (!copied.ok()) GiveUp(job, std::string(copied.message()));
}

void References::GiveUp(const Job& job, const std::string& why) {
  failure_ = absl::StrCat("cannot compute ", job.what, ": ", why);
  std::erase_if(jobs_, [&](const Job& other) { return other.needs == job.serves; });
}

bool References::IsMaking(const std::string& serves) const {
  return std::any_of(jobs_.begin(), jobs_.end(),
                     [&](const Job& job) { return job.serves == serves; }) ||
         std::any_of(running_.begin(), running_.end(),
                     [&](const Running& running) { return running.job.serves == serves; });
}

std::deque<References::Job>::iterator References::NextJob() {
  return std::find_if(jobs_.begin(), jobs_.end(),
                      [&](const Job& job) { return job.needs.empty() || !IsMaking(job.needs); });
}

int References::Advance(int slots) {
  for (auto it = running_.begin(); it != running_.end();) {
    int status = 0;
    if (::waitpid(it->process.pid, &status, WNOHANG) != it->process.pid) {
      ++it;
      continue;
    }
    Job job = std::move(it->job);
    it = running_.erase(it);
    Finish(std::move(job), status);
  }
  while (std::ssize(running_) < std::min(slots, cores_)) {
    const auto next = NextJob();
    if (next == jobs_.end()) break;
    Job job = std::move(*next);
    jobs_.erase(next);
    if (absl::Status made = CreateDirectories(job.log.parent_path()); !made.ok())
      failure_ = std::string(made.message());
    absl::StatusOr<PipedProcess> started = StartPiped(job.command, job.log);
    if (!started.ok()) {
      GiveUp(job, absl::StrCat(started.status().message(), " (run tools/bkm, which builds it)"));
      continue;
    }
    started->to_child.Close();
    running_.push_back({std::move(job), *std::move(started)});
  }
  return static_cast<int>(running_.size());
}

}  // namespace bkm
