// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/preparing_cells.h"

#include <utility>
#include <variant>

#include "harness/base/status_macros.h"

namespace bkm {

void StopCell(PreparedCell& cell, Stage stage, EndingKind ending, absl::string_view message) {
  cell.stopped = CellFacts::NeverRan(ending, message, stage);
}

Stage StageOf(EndingKind ending) {
  return ending == EndingKind::kInstallFailed ? Stage::kInstall : Stage::kResolve;
}

absl::StatusOr<std::unique_ptr<PreparingCells>> PreparingCells::Begin(
    CellSteps& steps, RuntimePreparation& runtimes, const std::vector<PlannedCell>& plan,
    const std::function<bool()>& stop) {
  std::unique_ptr<PreparingCells> cells(new PreparingCells(steps, runtimes));
  for (const PlannedCell& planned : plan) {
    if (stop()) return absl::CancelledError("interrupted");
    ASSIGN_OR_RETURN(cells->cells_.emplace_back(), steps.PrepareSubjects(planned));
  }
  for (const PreparedCell& cell : cells->cells_) {
    cells->states_.push_back(cell.stopped ? State::kReady : State::kResolving);
    std::string& key = cells->keys_.emplace_back();
    if (cell.stopped) continue;
    ASSIGN_OR_RETURN(const RuntimeRequest request, steps.RequestOf(cell));
    key = runtimes.Resolve(request);
  }
  return cells;
}

PreparingCells::~PreparingCells() { runtimes_.Finish(); }

std::vector<CellRecord> PreparingCells::records() const {
  std::vector<CellRecord> records;
  for (const PreparedCell& cell : cells_) records.push_back(cell.record);
  return records;
}

absl::StatusOr<std::vector<CellSupply::Ready>> PreparingCells::TakeWithin(absl::Duration wait) {
  std::vector<Ready> ready;
  changed_ |= runtimes_.Advance(changed_ ? absl::ZeroDuration() : wait);
  if (!std::exchange(changed_, false)) return ready;
  if (!AdvanceAll().ok()) {
    // What still runs may bring an error of an earlier cell.
    runtimes_.Finish();
    return AdvanceAll();
  }
  for (size_t i = 0; i < cells_.size(); ++i) {
    if (states_[i] != State::kReady) continue;
    states_[i] = State::kTaken;
    ++taken_;
    ready.push_back({i, cells_[i]});
  }
  return ready;
}

absl::Status PreparingCells::AdvanceAll() {
  absl::Status first;
  const auto note = [&first](const absl::Status& status) {
    // What was not started because of another error is not worth a word.
    if (first.ok() || absl::IsCancelled(first)) first = status.ok() ? first : status;
  };
  // Whether the registry answers at all is known before any cell is blamed.
  for (const std::string& key : keys_) {
    const Resolution* resolution = key.empty() ? nullptr : runtimes_.resolution(key);
    resolved_some_ |= resolution && resolution->ok();
  }
  for (size_t i = 0; i < cells_.size(); ++i) {
    if (states_[i] == State::kResolving) note(UseResolution(i));
  }
  for (size_t i = 0; i < cells_.size(); ++i) {
    if (states_[i] != State::kInstalling) continue;
    const auto* python = runtimes_.environment(cells_[i].record.lock);
    installed_some_ |= python && python->ok();
  }
  for (size_t i = 0; i < cells_.size(); ++i) {
    if (states_[i] == State::kInstalling) note(UseEnvironment(i));
  }
  return first;
}

void PreparingCells::Stop(size_t index, Stage stage, EndingKind ending, absl::string_view message) {
  StopCell(cells_[index], stage, ending, message);
  states_[index] = State::kReady;
}

absl::Status PreparingCells::UseResolution(size_t index) {
  const Resolution* resolution = runtimes_.resolution(keys_[index]);
  if (!resolution) return absl::OkStatus();
  PreparedCell& cell = cells_[index];
  const absl::Status& status = resolution->status();
  if (absl::IsUnavailable(status)) {
    // That the registry does not answer is this cell's result only if it answers for others.
    if (!resolved_some_) return runtimes_.resolving() ? absl::OkStatus() : status;
    Stop(index, Stage::kResolve, EndingKind::kRegistryUnreachable, status.message());
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(status);
  if (const auto* conflict = std::get_if<NoSolution>(&**resolution)) {
    ASSIGN_OR_RETURN(const RuntimeRequest request, steps_.RequestOf(cell));
    const NoSolution own = NoSolutionOf(request, conflict->complaint);
    Stop(index, StageOf(conflict->ending), conflict->ending, own.message);
    return absl::OkStatus();
  }
  std::shared_ptr<const RuntimeLock>& lock = locks_[keys_[index]];
  if (!lock) lock = std::make_shared<const RuntimeLock>(std::get<RuntimeLock>(**resolution));
  steps_.UseLock(lock, cell);
  runtimes_.CreateEnvironment(lock);
  states_[index] = State::kInstalling;
  return absl::OkStatus();
}

absl::Status PreparingCells::UseEnvironment(size_t index) {
  PreparedCell& cell = cells_[index];
  const auto* python = runtimes_.environment(cell.record.lock);
  if (!python) return absl::OkStatus();
  const absl::Status& status = python->status();
  if (absl::IsAborted(status)) {
    // A package that does not build is a fault of the lock, not of this machine.
    Stop(index, Stage::kInstall, EndingKind::kInstallFailed, status.message());
    return absl::OkStatus();
  }
  if (absl::IsUnavailable(status)) {
    if (!installed_some_) return runtimes_.busy() ? absl::OkStatus() : status;
    Stop(index, Stage::kInstall, EndingKind::kRegistryUnreachable, status.message());
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(steps_.Finish(**python, cell));
  states_[index] = State::kReady;
  return absl::OkStatus();
}

}  // namespace bkm
