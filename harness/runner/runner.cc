// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/runner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "harness/base/check.h"
#include "harness/base/files.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/judge/cell_files.h"
#include "harness/judge/reasons.h"
#include "harness/model/observation.h"
#include "harness/runner/machine_facts.h"

namespace bkm {
namespace {

// What the worker observed of a cell that was measured before; null if it is unknown.
Json ReadObserved(const std::filesystem::path& folder) {
  absl::StatusOr<Json> observed = ReadJsonFile(folder / kObservedFile);
  return observed.ok() ? *std::move(observed) : Json();
}

// Cells recorded between two writes of run.json: a killed run loses little of it, and nothing of
// what the cells' folders hold.
constexpr size_t kWriteRunEvery = 8;
// run.json holds all cells, so that a write takes longer the larger the run is. At most one part in
// so many of a run's time is spent on it.
constexpr int kWriteRunShare = 20;

}  // namespace

absl::StatusOr<bool> Runner::Run(CellSupply& supply, RunRecord& run) {
  run_ = &run;
  run.finished = false;
  for (CellRecord& record : supply.records()) {
    run.cells.push_back(record);
    cells_.emplace_back().record = std::move(record);
  }
  observer_.OnPlanned(static_cast<int>(run.cells.size()));
  absl::Status supplied = TakeReady(supply);
  RETURN_IF_ERROR(WriteRunSoon(/*now=*/true));
  bool interrupted = false;
  // Two phases, in turn: start the cells that have room, then wait for one event.
  bool finished = false;
  for (;;) {
    const bool goes_on = !interrupted && supplied.ok();
    const bool may_start = goes_on && clock_.Elapsed() < options_.start_until;
    if (may_start) supplied = TakeReady(supply);
    background_ = judge_.Advance(goes_on ? SlotsForReferences() : 0);
    if (may_start) RETURN_IF_ERROR(TellAndFeed());
    if (goes_on && !may_start) RETURN_IF_ERROR(TellJudged());
    if (may_start) RETURN_IF_ERROR(StartReady());
    const bool judged = background_ == 0 && untold_.empty();
    finished = pending_.empty() && judged && !more_to_come_;
    if (executor_.running() == 0 && (may_start ? finished : !goes_on || judged)) break;
    WaitResult result = executor_.WaitAny(std::chrono::milliseconds(250));
    if (std::holds_alternative<Interrupted>(result)) {
      interrupted = true;
      executor_.CancelAll();
    } else if (auto* ended = std::get_if<CellFinished>(&result)) {
      RETURN_IF_ERROR(HandleFinished(std::move(*ended)));
    }
    observer_.OnTick(executor_.running());
  }
  RETURN_IF_ERROR(WriteRunSoon(/*now=*/true));
  if (!interrupted) RETURN_IF_ERROR(supplied);
  return !interrupted && finished;
}

absl::Status Runner::TakeReady(CellSupply& supply) {
  more_to_come_ = !supply.done();
  if (!more_to_come_) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::vector<CellSupply::Ready> ready, supply.Take());
  more_to_come_ = !supply.done();
  for (const CellSupply::Ready& each : ready) {
    const CellRecord& record = each.cell.record;
    if (record.cell.is_control()) controls_.insert(ControlKey(record));
  }
  for (CellSupply::Ready& each : ready) {
    if (!each.index) observer_.OnAdded(each.cell.record, "run again, to see whether it is stable");
    RETURN_IF_ERROR(each.index ? Admit(*each.index, std::move(each.cell), /*front=*/false)
                               : Add(std::move(each.cell), /*front=*/false));
  }
  return absl::OkStatus();
}

absl::Status Runner::TellJudged() {
  std::vector<size_t> untold;
  untold.swap(untold_);
  if (!options_.judges) return absl::OkStatus();
  for (const size_t index : untold) {
    const bool late = !run_->cells[index].verdict;
    if (late) RETURN_IF_ERROR(Judge(index));
    if (run_->cells[index].verdict) {
      if (late) observer_.OnJudged(run_->cells[index]);
      RETURN_IF_ERROR(feed_.Judged(run_->cells[index]));
    } else {
      untold_.push_back(index);
    }
  }
  return absl::OkStatus();
}

absl::Status Runner::TellAndFeed() {
  for (;;) {
    RETURN_IF_ERROR(TellJudged());
    const int room = options_.slots - BusySlots() - background_ - static_cast<int>(pending_.size());
    if (room <= 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(std::vector<PreparedCell> cells, feed_.Next(room));
    if (cells.empty()) return absl::OkStatus();
    for (PreparedCell& cell : cells) RETURN_IF_ERROR(Add(std::move(cell), /*front=*/false));
  }
}

absl::Status Runner::Add(PreparedCell cell, bool front) {
  run_->cells.emplace_back();
  cells_.emplace_back();
  return Admit(cells_.size() - 1, std::move(cell), front);
}

absl::Status Runner::Admit(size_t index, PreparedCell cell, bool front) {
  run_->cells[index] = cell.record;
  cells_[index] = std::move(cell);
  const PreparedCell& added = cells_[index];
  if (added.lock) RETURN_IF_ERROR(directory_.WriteLock(*added.lock));
  const Json request = MakeRequest(added, directory_.cell(added.record), options_.task);
  ASSIGN_OR_RETURN(const bool taken, TakeWithoutRunning(index, request));
  if (taken) return absl::OkStatus();
  const auto [first, is_first] =
      first_of_request_.emplace(request["key"].get<std::string>(), index);
  if (!is_first && measured_.contains(first->second)) return Inherit(index, first->second);
  if (!is_first) {
    waiting_[first->second].push_back(index);
    return absl::OkStatus();
  }
  front ? pending_.push_front({index}) : pending_.push_back({index});
  return absl::OkStatus();
}

absl::StatusOr<bool> Runner::TakeWithoutRunning(size_t index, const Json& request) {
  const CellRecord& record = run_->cells[index];
  if (cells_[index].stopped) {
    if (const absl::Status made = directory_.PrepareCell(record, request, options_.launcher);
        !made.ok()) {
      RETURN_IF_ERROR(GiveUp(index, made));
    } else {
      RETURN_IF_ERROR(Record(index, *cells_[index].stopped, Json(), /*reused=*/false));
    }
    return true;
  }
  if (!options_.reuse) return false;
  // Measure again if the files cannot be read.
  if (!IsSound(record)) return TakeKept(index, request);
  const auto old_request = directory_.ReadRequest(record);
  const auto old_facts = directory_.ReadObservation(record);
  const bool readable = old_request.ok() && old_facts.ok() && *old_request && *old_facts;
  if (!readable || MemberOf(**old_request, "key") != request["key"] ||
      (*old_facts)->seen().SaysNothing())
    return TakeKept(index, request);
  first_of_request_.emplace(request["key"].get<std::string>(), index);
  if (std::optional<KeptObservation> from = ReadInherited(directory_.cell(record))) {
    if (from->cell != record.id) run_->cells[index].inherited_from = from->cell;
    inherited_.Add(index, *std::move(from));
  }
  RETURN_IF_ERROR(Record(index, **old_facts, ReadObserved(directory_.cell(record)),
                         /*reused=*/true));
  return true;
}

bool Runner::IsSound(const CellRecord& record) {
  const absl::Status verified = directory_.VerifyCell(record);
  if (verified.ok()) return true;
  const auto aside = directory_.SetCellAside(record);
  observer_.OnWarning(absl::StrCat(
      verified.message(), ": measuring the cell again",
      aside.ok() ? absl::StrCat("; its old files are in ", aside->string()) : std::string()));
  return false;
}

absl::Status Runner::GiveUp(size_t index, const absl::Status& why) {
  CellRecord& record = run_->cells[index];
  const bool full = absl::IsResourceExhausted(why);
  record.verdict = Verdict{.kind = VerdictKind::kSpurious,
                           .stage = Stage::kResolve,
                           .reason = full ? reason::kDiskFull : reason::kFolderUnwritable,
                           .message = std::string(why.message()),
                           .blame = {"harness"}};
  observer_.OnFinished(record, /*reused=*/false);
  untold_.push_back(index);
  // Equal cells have folders of their own.
  const std::vector<size_t> equal_cells = std::move(waiting_[index]);
  waiting_.erase(index);
  std::erase_if(first_of_request_, [&](const auto& entry) { return entry.second == index; });
  for (const size_t equal : equal_cells) pending_.push_back({equal});
  return WriteRunSoon(/*now=*/false);
}

absl::StatusOr<bool> Runner::TakeKept(size_t index, const Json& request) {
  CellRecord& record = run_->cells[index];
  // An equal cell of this run stands for this one, so its files are not needed twice.
  const auto equal = first_of_request_.find(request["key"].get<std::string>());
  if (equal != first_of_request_.end() && equal->second != index) return false;
  const std::optional<KeptObservation> kept = stored_.Find(cells_[index]);
  if (!kept) return false;
  if (kept->cell != record.id && inherited_.IsSampled(record.id)) {
    inherited_.Expect(index, *kept);
    return false;
  }
  // Measuring reports what is wrong with the folder.
  if (!directory_.PrepareCell(record, request, options_.launcher).ok() ||
      !directory_.AdoptCell(record, kept->folder).ok())
    return false;
  const auto facts = directory_.ReadObservation(record);
  if (!facts.ok() || !*facts || (*facts)->seen().SaysNothing()) return false;
  if (kept->cell != record.id) record.inherited_from = kept->cell;
  RETURN_IF_ERROR(WriteInherited(directory_.cell(record), *kept));
  inherited_.Add(index, *kept);
  first_of_request_.emplace(request["key"].get<std::string>(), index);
  RETURN_IF_ERROR(Record(index, **facts, ReadObserved(directory_.cell(record)),
                         /*reused=*/true));
  return true;
}

std::deque<Runner::Pending>::iterator Runner::NextPending() {
  // Prefer cells of a worker that is running: its runtime is loaded.
  const auto worker_is_up = [&](const Pending& pending) {
    return workers_up_.contains(cells_[pending.index].worker.key);
  };
  const auto first_try = [](const Pending& pending) { return !pending.second_try; };
  auto it = std::find_if(pending_.begin(), pending_.end(),
                         [&](const Pending& p) { return first_try(p) && worker_is_up(p); });
  if (it == pending_.end()) it = std::find_if(pending_.begin(), pending_.end(), first_try);
  // Retries come last, so that no other cell disturbs them.
  return it == pending_.end() ? pending_.begin() : it;
}

int Runner::SlotsOf(size_t index) const {
  return std::min(cells_[index].record.cell.probe.layout.ranks(), options_.slots);
}

int Runner::BusySlots() const {
  int busy = 0;
  for (const auto& [id, pending] : in_flight_) busy += SlotsOf(pending.index);
  return busy;
}

bool Runner::DevicesHaveRoom(size_t index) const {
  const int most = cells_[index].device_cells;
  const auto busy = std::count_if(in_flight_.begin(), in_flight_.end(), [&](const auto& cell) {
    return cells_[cell.second.index].device_cells > 0;
  });
  return most == 0 || busy < most;
}

int Runner::SlotsForReferences() {
  const int free = options_.slots - BusySlots();
  // Cells come first: as long as one may follow, references take one slot. So they do beside a
  // retry, which nothing should disturb.
  if (pending_.empty() && !more_to_come_ && !alone_) return free;
  if (free <= 0 || pending_.empty() || alone_) return std::min(free, 1);
  // References in turn would always hold one of the slots that a cell of several ranks needs.
  const int needed = SlotsOf(NextPending()->index);
  return needed == 1 || needed > free ? 1 : 0;
}

absl::Status Runner::StartReady() {
  while (!pending_.empty() && !alone_) {
    const int busy = BusySlots() + background_;
    const auto next = NextPending();
    const Pending pending = *next;
    if (busy + SlotsOf(pending.index) > options_.slots || !DevicesHaveRoom(pending.index)) break;
    const bool busy_otherwise = executor_.running() > 0 || background_ > 0 || more_to_come_;
    if (pending.second_try && busy_otherwise) break;
    pending_.erase(next);
    // A cell that this run has measured since may stand for it.
    ASSIGN_OR_RETURN(const bool taken, TakeLate(pending));
    if (!taken) RETURN_IF_ERROR(StartOne(pending));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Runner::TakeLate(const Pending& pending) {
  const PreparedCell& cell = cells_[pending.index];
  if (!options_.reuse || pending.second_try || pending.measure) return false;
  const std::string worker = cell.worker.key;
  ASSIGN_OR_RETURN(
      const bool taken,
      TakeKept(pending.index, MakeRequest(cell, directory_.cell(cell.record), options_.task)));
  if (taken && workers_up_.contains(worker)) ReleaseWorker(worker);
  return taken;
}

absl::Status Runner::StartOne(const Pending& pending) {
  const PreparedCell& cell = cells_[pending.index];
  TaskSettings settings = options_.task;
  Json request = MakeRequest(cell, directory_.cell(cell.record), settings);
  if (pending.second_try) request["limits"]["timeout_s"] = 2 * settings.limits.timeout_s;
  const absl::Status made = directory_.PrepareCell(cell.record, request, options_.launcher);
  if (!made.ok()) {
    RETURN_IF_ERROR(GiveUp(pending.index, made));
    if (workers_up_.contains(cell.worker.key)) ReleaseWorker(cell.worker.key);
    return absl::OkStatus();
  }
  alone_ = pending.second_try;
  in_flight_[cell.record.id] = pending;
  workers_up_.insert(cell.worker.key);
  executor_.Start({cell.record.id, cell.worker, request, &cell, &settings});
  observer_.OnStarted(cell.record, executor_.running());
  return absl::OkStatus();
}

absl::Status Runner::HandleFinished(CellFinished finished) {
  const auto it = in_flight_.find(finished.id);
  HARNESS_CHECK(it != in_flight_.end()) << "a cell that was not started ended: " << finished.id;
  const Pending pending = it->second;
  in_flight_.erase(it);
  if (pending.second_try) alone_ = false;
  CellFacts facts =
      AdmittedCell(std::move(finished.facts), directory_.cell(run_->cells[pending.index]));
  const EndingKind ending = facts.ending().kind;
  if (ending == EndingKind::kCancelled) return absl::OkStatus();
  if (ending == EndingKind::kRaised) {
    facts.SetMachine(finished.machine ? finished.machine->facts
                                      : MachineFacts(directory_.cell(run_->cells[pending.index]),
                                                     options_.task.limits.memory_mib));
  }
  const bool timed_out = ending == EndingKind::kTimedOut;
  const bool signalled = ending == EndingKind::kSignalled;
  if (pending.second_try && !pending.crashed) {
    facts.SetTimeouts(timed_out ? 2 : 1);
  } else if (timed_out) {
    facts.SetTimeouts(1);
  }
  if (pending.crashed) facts.SetCrashes(signalled ? 2 : 1);
  // A right cell of several ranks was seen to crash once, in a thread that runs no Python.
  const bool crashed = signalled && cells_[pending.index].record.cell.probe.layout != Layout();
  if ((timed_out || crashed) && !pending.second_try) {
    pending_.push_back({pending.index, /*second_try=*/true, pending.measure, crashed});
    observer_.OnAgain(run_->cells[pending.index],
                      crashed ? "a rank crashed: retrying alone"
                              : "timed out: retrying alone with twice the limit");
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckInherited(pending.index, facts));
  const bool elsewhere = finished.machine && !finished.machine->same_cpu;
  RETURN_IF_ERROR(
      Record(pending.index, std::move(facts), finished.observed, /*reused=*/false, !elsewhere));
  ReleaseWorker(cells_[pending.index].worker.key);
  return absl::OkStatus();
}

absl::Status Runner::Judge(size_t index) {
  if (!options_.judges) return absl::OkStatus();
  ASSIGN_OR_RETURN(run_->cells[index].verdict, judge_.Judge(run_->cells[index]));
  return absl::OkStatus();
}

// An equal cell takes the evidence of `from`.
absl::Status Runner::Inherit(size_t equal, size_t from) {
  run_->cells[equal].inherited_from = run_->cells[from].id;
  run_->cells[equal].dir = run_->cells[from].dir;
  run_->cells[equal].cost = {};
  run_->cells[equal].measured = run_->cells[from].measured;
  ++reused_;
  equals_[from].push_back(equal);
  RETURN_IF_ERROR(Judge(equal));
  observer_.OnFinished(run_->cells[equal], true);
  untold_.push_back(equal);
  return absl::OkStatus();
}

absl::Status Runner::CheckInherited(size_t index, const CellFacts& facts) {
  if (facts.seen().SaysNothing()) return absl::OkStatus();
  const CellRecord& record = run_->cells[index];
  const auto difference = inherited_.Check(index, record.id, facts.json(), directory_.cell(record));
  if (!difference) return absl::OkStatus();
  stored_.Discard(difference->kept);
  observer_.OnWarning(absl::StrCat(
      "the cell ", record.id, " was measured to check the stored observation of ",
      difference->kept.cell, ", and differs from it in ", difference->what,
      ": discarding that observation and measuring the ", difference->cells.size(),
      " cells that took it; compare both cells with `bkm explain`, and report a cell that is the "
      "same each time"));
  for (const size_t cell : difference->cells)
    MeasureAgain(cell, absl::StrCat("measured again: ", difference->kept.cell, " proved wrong"));
  return absl::OkStatus();
}

void Runner::MeasureAgain(size_t index, const std::string& why) {
  const auto forget = [&](size_t cell) {
    run_->cells[cell].verdict.reset();
    std::erase(untold_, cell);
    --reused_;
  };
  forget(index);
  inherited_.Remove(index);
  measured_.erase(index);
  run_->cells[index].inherited_from.reset();
  const std::vector<size_t> equal_cells = std::exchange(equals_[index], {});
  for (const size_t equal : equal_cells) {
    forget(equal);
    waiting_[index].push_back(equal);
  }
  pending_.push_back({.index = index, .measure = true});
  observer_.OnAgain(run_->cells[index], why);
}

absl::Status Runner::Record(size_t index, CellFacts facts, const Json& observed, bool reused,
                            bool may_keep) {
  if (!reused) {
    facts.SetMeasured(absl::FormatTime(absl::RFC3339_sec, clock_.Now(), absl::UTCTimeZone()));
    absl::Status written;
    if (!observed.is_null()) {
      written = WriteFile(directory_.cell(run_->cells[index]) / kObservedFile, ToText(observed));
    }
    if (written.ok()) written = directory_.WriteObservation(run_->cells[index], facts);
    if (!written.ok()) return GiveUp(index, written);
  }
  reused_ += reused;
  run_->cells[index].measured = facts.measured();
  // What was inherited is stored already, with its own trees.
  if (!run_->cells[index].inherited_from && may_keep)
    stored_.Keep(cells_[index], facts, observed, directory_.cell(cells_[index].record));
  RETURN_IF_ERROR(judge_.Observe(cells_[index], facts.seen()));
  run_->cells[index].cost = facts.cost();
  RETURN_IF_ERROR(Judge(index));
  observer_.OnFinished(run_->cells[index], reused);
  untold_.push_back(index);
  measured_.insert(index);
  for (const size_t equal : waiting_[index]) RETURN_IF_ERROR(Inherit(equal, index));
  waiting_.erase(index);
  RETURN_IF_ERROR(AddControlFor(index, facts.seen()));
  RETURN_IF_ERROR(AddTwinsFor(index));
  return WriteRunSoon(/*now=*/false);
}

absl::Status Runner::AddTwinsFor(size_t index) {
  // Elsewhere, where nothing is judged, nobody compares.
  if (!options_.controls || !options_.judges || cells_[index].stopped) return absl::OkStatus();
  for (PreparedCell& twin : TwinsOf(cells_[index])) {
    if (!twins_.insert(twin.record.id).second) continue;
    observer_.OnAdded(twin.record, "without an engine option, to see what the option does");
    RETURN_IF_ERROR(Add(std::move(twin), /*front=*/false));
  }
  return absl::OkStatus();
}

absl::Status Runner::AddControlFor(size_t index, const Observation& seen) {
  // Only an exception is compared between a cell and its control.
  if (!options_.controls || seen.exceptions.empty() || cells_[index].stopped)
    return absl::OkStatus();
  std::optional<PreparedCell> control = ControlOf(cells_[index]);
  if (!control || !controls_.insert(ControlKey(cells_[index].record)).second)
    return absl::OkStatus();
  observer_.OnAdded(control->record, "control, for blame");
  return Add(*std::move(control), /*front=*/true);
}

bool Runner::IsNeeded(const std::string& worker) const {
  const auto uses = [&](size_t index) { return cells_[index].worker.key == worker; };
  return std::any_of(pending_.begin(), pending_.end(),
                     [&](const Pending& p) { return uses(p.index); }) ||
         std::any_of(in_flight_.begin(), in_flight_.end(),
                     [&](const auto& e) { return uses(e.second.index); });
}

void Runner::ReleaseWorker(const std::string& key) {
  if (IsNeeded(key)) return;
  executor_.Release(key);
  workers_up_.erase(key);
}

absl::Status Runner::WriteRunSoon(bool now) {
  const absl::Duration begin = clock_.Elapsed();
  const bool soon = begin - run_written_ < kWriteRunShare * write_took_;
  if (!now && (++unwritten_ < kWriteRunEvery || soon)) return absl::OkStatus();
  unwritten_ = 0;
  const absl::Status written = directory_.WriteRun(*run_);
  run_written_ = clock_.Elapsed();
  write_took_ = run_written_ - begin;
  return written;
}

}  // namespace bkm
