// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/ray/ray_executor.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/fields.h"
#include "harness/base/files.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/bundle/packed_cells.h"
#include "harness/model/layout.h"
#include "harness/runner/inherited_cells.h"
#include "harness/runner/measured_on.h"
#include "harness/runner/run_directory.h"
#include "harness/runner/task.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using SteadyClock = std::chrono::steady_clock;

constexpr int kMostRestarts = 3;
constexpr std::chrono::minutes kLongestStart(5);  // for Ray to start, on a busy machine
constexpr std::chrono::milliseconds kTick(200);

CellFinished WithoutResult(const std::string& id, EndingKind kind, const std::string& message) {
  return {id, CellFacts::NeverRan(kind, message)};
}

}  // namespace

RayExecutor::RayExecutor(RayExecutorOptions options, fs::path scratch, PartFile parts)
    : options_(std::move(options)),
      scratch_(std::move(scratch)),
      parts_(std::move(parts)),
      packer_(parts_),
      driver_(options_.driver),
      dispatch_(
          options_.dispatch, clock_, [this](const Json& message) { driver_.Send(message); },
          [this](const std::string& part) { return parts_.Read(part); }, options_.report) {}

absl::StatusOr<std::unique_ptr<RayExecutor>> RayExecutor::Create(RayExecutorOptions options,
                                                                 fs::path scratch) {
  ASSIGN_OR_RETURN(PartFile parts, PartFile::Open(scratch / "parts"));
  std::unique_ptr<RayExecutor> executor(
      new RayExecutor(std::move(options), std::move(scratch), std::move(parts)));
  RETURN_IF_ERROR(executor->driver_.Start());
  const auto deadline = SteadyClock::now() + kLongestStart;
  while (executor->dispatch_.nodes().empty()) {
    executor->Serve(kTick);
    const std::string& fatal = executor->dispatch_.fatal();
    if (executor->interrupted()) return absl::CancelledError("interrupted while Ray started");
    if (!fatal.empty()) return absl::UnavailableError(absl::StrCat("cannot use Ray: ", fatal));
    if (executor->driver_.ended())
      return absl::UnavailableError(absl::StrCat("cannot use Ray: ", executor->driver_.Why(), " (",
                                                 executor->options_.driver.log.string(), ")"));
    if (SteadyClock::now() > deadline)
      return absl::DeadlineExceededError("cannot use Ray: it did not start within 5 minutes");
  }
  return executor;
}

RayExecutor::~RayExecutor() { RemoveTree(scratch_).IgnoreError(); }

bool RayExecutor::interrupted() const {
  pollfd fd = {options_.interrupt_fd, POLLIN, 0};
  return options_.interrupt_fd >= 0 && ::poll(&fd, 1, 0) > 0;
}

int RayExecutor::running() const {
  return dispatch_.running() + static_cast<int>(finished_.size());
}

int RayExecutor::slots() const {
  RayResources cell = options_.resources;
  cell.try_emplace("CPU", 1);
  int slots = 0;
  for (const auto& [node, resources] : dispatch_.nodes()) slots += CellsThatFit(cell, resources);
  return std::max(1, slots);
}

absl::StatusOr<RayCell> RayExecutor::Pack(const CellTask& task) {
  if (!task.cell || !task.settings)
    return absl::InternalError("this cell cannot run on another machine");
  TaskSettings settings = *task.settings;
  BundleManifest manifest =
      EmptyManifest({.matrix = "ray", .limits = settings.limits, .cell_code = settings.cell_code});
  // A tree is thousands of parts.
  RETURN_IF_ERROR(parts_.Transact([&] { return packer_.Add(*task.cell, manifest); }));
  const int timeout_s =
      static_cast<int>(WholeOf(ObjectOf(task.request, "limits"), "timeout_s").value_or(0));
  RayCell cell{.id = task.id,
               .runtime = task.cell->record.lock,
               .run = {{"key", TextOf(task.request, "key")},
                       {"timeout_s", timeout_s},
                       {"manifest", DocumentText(manifest)}},
               .resources = options_.resources,
               .timeout = absl::Seconds(timeout_s),
               .folder = TextOf(task.request, "dir")};
  cell.resources.try_emplace("CPU", task.cell->record.cell.probe.layout.ranks());
  cell.resources.try_emplace("memory", double{1 << 20} * settings.limits.memory_mib);
  if (task.cell->lock) locks_[cell.runtime] = task.cell->lock;
  return cell;
}

void RayExecutor::Start(const CellTask& task) {
  absl::StatusOr<RayCell> cell = Pack(task);
  if (cell.ok()) {
    // A retry writes into the folder of the first try.
    std::erase_if(firsts_, [&](const auto& first) { return first.second.folder == cell->folder; });
    return dispatch_.Start(*std::move(cell));
  }
  finished_.push_back(
      WithoutResult(task.id, EndingKind::kLost, std::string(cell.status().message())));
}

void RayExecutor::Serve(std::chrono::milliseconds wait) {
  for (const std::string& line : driver_.Lines(wait, options_.interrupt_fd)) dispatch_.OnLine(line);
}

void RayExecutor::RestartDriver() {
  const std::string& fatal = dispatch_.fatal();
  const std::string why = fatal.empty() ? driver_.Why() : fatal;
  dispatch_.OnDriverLost(why);
  if (!fatal.empty() || ++restarts_ > kMostRestarts) return dispatch_.EndAll(why);
  options_.report(absl::StrCat(why, "; starting another one"));
  const absl::Status started = driver_.Start();
  if (!started.ok()) dispatch_.EndAll(std::string(started.message()));
}

WaitResult RayExecutor::WaitAny(std::chrono::milliseconds deadline) {
  const auto until = SteadyClock::now() + deadline;
  while (finished_.empty()) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - SteadyClock::now());
    if (left.count() <= 0) return DeadlinePassed{};
    if (interrupted()) return Interrupted{};
    if (driver_.ended()) RestartDriver();
    dispatch_.Tick();
    Serve(std::min(left, kTick));
    Collect();
  }
  CellFinished result = std::move(finished_.front());
  finished_.pop_front();
  return result;
}

void RayExecutor::Collect() {
  while (std::optional<RayResult> result = dispatch_.TakeResult()) {
    if (result->late) {
      CompareLate(*result);
    } else {
      Finish(*std::move(result));
    }
  }
  std::erase_if(firsts_, [&](const auto& first) { return !dispatch_.IsOpen(first.first); });
}

void RayExecutor::Finish(RayResult result) {
  if (!result.lost.empty()) {
    finished_.push_back(WithoutResult(result.id, EndingKind::kLost, result.lost));
    return;
  }
  const absl::Status written = WriteResultFiles(result.files, result.folder);
  if (!written.ok()) {
    finished_.push_back(
        WithoutResult(result.id, EndingKind::kLost, std::string(written.message())));
    return;
  }
  NoteMachine(result, result.folder);
  if (dispatch_.IsOpen(result.cell)) firsts_[result.cell] = {result.folder, result.seen->json()};
  const bool same_cpu = TextOf(result.machine, "cpu") == TextOf(options_.machine, "cpu");
  finished_.push_back({result.id, *std::move(result.seen), std::move(result.observed),
                       OtherMachine{.facts = result.facts, .same_cpu = same_cpu}});
}

// Only what differs from this machine is worth a note.
void RayExecutor::NoteMachine(const RayResult& result, const fs::path& folder) {
  if (result.machine == options_.machine) return;
  const absl::StatusOr<WorkMachine> machine = ReadFields<WorkMachine>(result.machine, "node");
  if (!machine.ok()) return;
  const auto lock = locks_.find(result.runtime);
  const MeasuredOn measured =
      MeasuredOnOf(*machine, lock == locks_.end() ? nullptr : lock->second.get());
  if (!WriteMeasuredOn(measured, folder).ok()) return;
  const Json json = WriteFields(measured);
  if (std::find(machines_.begin(), machines_.end(), json) == machines_.end())
    machines_.push_back(json);
}

void RayExecutor::CompareLate(const RayResult& result) {
  const auto first = firsts_.find(result.cell);
  if (first == firsts_.end()) return;
  const fs::path folder = scratch_ / "late";
  std::string what = "its files";
  if (WriteResultFiles(result.files, folder).ok()) {
    what = FirstDifference(first->second.observation, first->second.folder, result.seen->json(),
                           folder);
  }
  RemoveTree(folder).IgnoreError();
  if (what.empty()) {
    options_.report(absl::StrCat(result.id, " ran twice, with equal results"));
    return;
  }
  options_.report(
      absl::StrCat(result.id, " ran twice, and its results differ in ", what, ": it is flaky"));
  unequal_.push_back({result.id, what});
}

void RayExecutor::CancelAll() {
  options_.interrupt_fd = -1;  // WaitAny must still return the cells
  dispatch_.EndAll("interrupted");
  while (const std::optional<RayResult> result = dispatch_.TakeResult()) {
    if (!result->late)
      finished_.push_back(WithoutResult(result->id, EndingKind::kCancelled, "interrupted"));
  }
}

}  // namespace bkm
