// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/session/measurement.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/judge/case_file.h"
#include "harness/model/dealing.h"
#include "harness/model/engine_kind.h"
#include "harness/numerics/golden_key.h"
#include "harness/numerics/probe_folder.h"
#include "harness/runner/judging.h"
#include "harness/runner/local_executor.h"
#include "harness/runner/observation_store.h"
#include "harness/runner/references.h"
#include "harness/runner/runner.h"

namespace bkm {
namespace {

// Idle workers that stay, for runs that may need their runtime again.
constexpr int kIdleWorkers = 2;

int Slots(const MeasurementOptions& options) {
  return options.slots > 0 ? options.slots
                           : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

int Slots(const MeasurementOptions& options, const CellExecutor& executor) {
  return options.slots <= 0 && executor.slots() > 0 ? executor.slots() : Slots(options);
}

// `idle`: as in LocalExecutorOptions.
absl::StatusOr<std::unique_ptr<CellExecutor>> MakeExecutor(const ExecutorSetup& setup, int idle) {
  if (setup.options.executor) return setup.options.executor(setup);
  const Installation& installation = setup.installation;
  const MeasurementOptions& options = setup.options;
  return std::make_unique<LocalExecutor>(
      LocalExecutorOptions{.cell_worker = installation.cell_worker(),
                           .python_code = installation.python_code(),
                           .kernels = installation.kernels(),
                           .preload = installation.preload(),
                           .sandbox = options.sandbox,
                           .slots = Slots(options),
                           .fresh = options.fresh,
                           .idle = idle,
                           .interrupt_fd = setup.signals.fd(),
                           .log_path = [directory = setup.directory](const std::string& key) {
                             return directory.worker_log(key.substr(0, 12));
                           }});
}

// An engine that ran another precision than requested is judged by the floor of that precision; a
// forward that was repeated in fp32 by that of fp32. A control may have another golden, and what a
// trainer dealt to its steps has one of its own.
absl::Status WantReferencesOf(References& references, const PreparedCell& cell,
                              const Observation& seen) {
  if (cell.probe_folder.empty()) return absl::OkStatus();  // judged by its ending only
  const Probe probe = AsDealt(cell.record.cell.probe, seen);
  std::filesystem::path folder = cell.probe_folder;
  if (!probe.dealt.empty()) {
    ASSIGN_OR_RETURN(folder, WriteProbeFolder(probe, CacheDirectory()));
  }
  for (const std::string& precision : FloorsFor(seen, probe)) {
    // There is no floor for another precision, and the judge says so.
    if (precision != "bf16" && precision != "fp32") continue;
    RETURN_IF_ERROR(references.Want(probe, folder, precision));
  }
  return absl::OkStatus();
}

// Before the cell runs, as far as they are known then.
absl::Status WantReferences(References& references, const PreparedCell& cell) {
  const Probe& probe = cell.record.cell.probe;
  if (cell.stopped || FindEngineKind(cell.record.cell.engine)->judged_by_ending_only ||
      IsDealtByTrainer(probe))
    return absl::OkStatus();
  return references.Want(probe, cell.probe_folder, probe.precision);
}

// The observations of all runs of this machine. Without them, or once the disk is full, a run only
// takes longer: the first failure is a warning and ends their use.
class LocalObservations : public StoredObservations {
 public:
  LocalObservations(bool wanted, const TaskSettings& settings, RunObserver& observer)
      : observer_(observer) {
    if (!wanted) return;
    absl::StatusOr<std::unique_ptr<ObservationStore>> store =
        Open(settings, [this](const std::string& damage) { observer_.OnWarning(damage); });
    if (store.ok()) {
      store_ = *std::move(store);
      if (!store_->set_aside().empty()) observer_.OnWarning(store_->set_aside());
    } else {
      Stop(store.status());
    }
  }

  std::optional<KeptObservation> Find(const PreparedCell& cell) override {
    if (!store_) return std::nullopt;
    absl::StatusOr<std::optional<KeptObservation>> found = store_->Find(cell);
    if (found.ok()) return *std::move(found);
    Stop(found.status());
    return std::nullopt;
  }
  void Keep(const PreparedCell& cell, const CellFacts& facts, const Json& observed,
            const std::filesystem::path& folder) override {
    if (store_) Check(store_->Keep(cell, facts, observed, folder));
  }
  void Discard(const KeptObservation& kept) override {
    if (store_) Check(store_->Discard(kept));
  }
  void Forget(const PreparedCell& cell) {
    if (store_) Check(store_->Forget(cell));
  }

 private:
  static absl::StatusOr<std::unique_ptr<ObservationStore>> Open(
      const TaskSettings& settings, std::function<void(const std::string&)> report) {
    const char* folder = std::getenv("BKM_OBSERVATIONS");
    ASSIGN_OR_RETURN(std::string cpu, CpuFeatures());
    return ObservationStore::Open(folder && *folder ? folder : CacheDirectory() / "observations",
                                  settings, std::move(cpu), std::move(report));
  }
  void Check(const absl::Status& status) {
    if (!status.ok()) Stop(status);
  }
  void Stop(const absl::Status& why) {
    observer_.OnWarning(
        absl::StrCat(why.message(), "; continuing without the observations of earlier runs"));
    store_.reset();
  }

  RunObserver& observer_;
  std::unique_ptr<ObservationStore> store_;  // null: not wanted, or failed
};

// Judges by the files of the run directory, once the cell's golden and floors are there.
class DirectoryJudge : public CellJudge {
 public:
  DirectoryJudge(RunJudge& judge, References& references, const RunRecord& run)
      : judge_(judge), references_(references), run_(run) {}

  absl::Status Observe(const PreparedCell& cell, const Observation& seen) override {
    if (seen.ending.kind != EndingKind::kCompleted) stopped_.insert(cell.record.id);
    if (IsDealtByTrainer(cell.record.cell.probe))
      dealt_.insert_or_assign(cell.record.id, AsDealt(cell.record.cell.probe, seen));
    return WantReferencesOf(references_, cell, seen);
  }
  absl::StatusOr<std::optional<Verdict>> Judge(const CellRecord& cell) override {
    const auto dealt = dealt_.find(cell.id);
    const bool is_making =
        references_.IsMaking(dealt == dealt_.end() ? cell.cell.probe : dealt->second);
    // What stopped a cell is known without any golden.
    if (is_making && !stopped_.contains(cell.id)) return std::optional<Verdict>();
    return judge_.JudgeCell(run_, cell, /*incomplete=*/is_making);
  }
  int Advance(int slots) override { return references_.Advance(slots); }

 private:
  RunJudge& judge_;
  References& references_;
  const RunRecord& run_;
  std::set<std::string> stopped_;       // ids of cells that did not come to their end
  std::map<std::string, Probe> dealt_;  // by id, of cells whose trainer deals documents
};

// Asks for the references of the cells that another feed chooses, and remembers the cells.
class ReferencedFeed : public CellFeed {
 public:
  ReferencedFeed(CellFeed& feed, References& references, std::vector<PreparedCell>& chosen)
      : feed_(feed), references_(references), chosen_(chosen) {}

  absl::StatusOr<std::vector<PreparedCell>> Next(int room) override {
    ASSIGN_OR_RETURN(std::vector<PreparedCell> cells, feed_.Next(room));
    for (const PreparedCell& cell : cells) RETURN_IF_ERROR(WantReferences(references_, cell));
    chosen_.insert(chosen_.end(), cells.begin(), cells.end());
    return cells;
  }
  absl::Status Judged(const CellRecord& cell) override { return feed_.Judged(cell); }

 private:
  CellFeed& feed_;
  References& references_;
  std::vector<PreparedCell>& chosen_;
};

// The same for the cells of a supply, which wait for the program that makes references to be built.
class ReferencedSupply : public CellSupply {
 public:
  ReferencedSupply(CellSupply& cells, References& references, std::vector<PreparedCell>& taken)
      : cells_(cells), references_(references), taken_(taken) {}

  std::vector<CellRecord> records() const override { return cells_.records(); }
  absl::StatusOr<std::vector<Ready>> Take() override {
    ASSIGN_OR_RETURN(std::vector<Ready> ready, cells_.Take());
    std::move(ready.begin(), ready.end(), std::back_inserter(held_));
    if (held_.empty()) return held_;
    ASSIGN_OR_RETURN(const bool is_building, Installation::IsBuilding());
    if (is_building) return std::vector<Ready>();
    for (const Ready& each : held_) {
      RETURN_IF_ERROR(WantReferences(references_, each.cell));
      taken_.push_back(each.cell);
    }
    return std::exchange(held_, {});
  }
  bool done() const override { return cells_.done() && held_.empty(); }

 private:
  CellSupply& cells_;
  References& references_;
  std::vector<PreparedCell>& taken_;
  std::vector<Ready> held_;
};

// A cell that gave another result when it ran again is flaky, whatever its verdict is. Whether
// there is one.
bool MarkUnequal(const std::vector<UnequalResults>& unequal, RunRecord& run) {
  bool found = false;
  for (CellRecord& cell : run.cells) {
    for (const UnequalResults& results : unequal) {
      if (results.id != cell.id) continue;
      found = true;
      Stability& stability = cell.stability.emplace(cell.stability.value_or(Stability()));
      if (stability.runs == 0 && cell.verdict) {
        stability.runs = 1;
        stability.verdicts[ShortText(*cell.verdict)] = 1;
      }
      ++stability.runs;
      ++stability.verdicts[absl::StrCat("another result (", results.what, ")")];
    }
  }
  return found;
}

// A flaky cell must not stand for others.
void ForgetFlaky(const RunRecord& run, const std::vector<PreparedCell>& cells,
                 LocalObservations& stored) {
  std::set<std::string> flaky;
  for (const CellRecord& cell : run.cells) {
    if (cell.is_flaky()) flaky.insert(cell.id);
  }
  for (const PreparedCell& cell : cells) {
    if (flaky.contains(cell.record.id)) stored.Forget(cell);
  }
}

absl::StatusOr<RunRecord> MeasureAll(const MeasurementSetup& setup, CellExecutor& executor,
                                     CellFeed& feed, CellSupply& cells) {
  const MeasurementOptions& options = setup.options;
  const RunDirectory& directory = setup.directory;
  ASSIGN_OR_RETURN(const FileLock lock, directory.Lock());
  ASSIGN_OR_RETURN(const std::string cell_code, setup.installation.CellCodeDigest());
  const Json limits = WriteFields(setup.matrix.limits);
  // Of the run's options, its cells can be prepared again with these only (bkm pack).
  RunRecord run{.matrix = setup.matrix.name,
                .sandbox = std::string(Name(options.sandbox)),
                .made_by = {{"limits", limits}}};
  RunJudge run_judge(directory);
  References references(setup.installation, CacheDirectory(), directory,
                        [&](const std::string& what) { setup.observer.OnNote(what); });
  const int slots = Slots(options, executor);
  const double preload_before_s = executor.preload_s();
  const TaskSettings task{
      .cell_code = cell_code, .limits = setup.matrix.limits, .sandbox = options.sandbox};
  std::vector<PreparedCell> asked;
  DirectoryJudge judge(run_judge, references, run);
  LocalObservations stored(options.store && options.reuse && !options.fresh, task, setup.observer);
  ReferencedFeed referenced(feed, references, asked);
  ReferencedSupply supply(cells, references, asked);
  const RealClock clock;
  const char* launcher = std::getenv("BKM_LAUNCHER");
  Runner runner({.slots = slots,
                 .controls = options.controls,
                 .reuse = options.reuse,
                 .verify_inherited = options.verify_inherited,
                 .verify_seed = static_cast<uint64_t>(absl::ToUnixNanos(clock.Now())),
                 .start_until = options.start_until,
                 .task = task,
                 .launcher = launcher ? launcher : "bkm"},
                {directory, executor, judge, stored, referenced, setup.observer, clock});
  const absl::Duration start = clock.Elapsed();
  ASSIGN_OR_RETURN(run.finished, runner.Run(supply, run));
  run.made_by = {{"slots", slots},
                 {"fresh", options.fresh},
                 {"reused", runner.reused()},
                 {"preload_s", executor.preload_s() - preload_before_s},
                 {"wall_s", absl::ToDoubleSeconds(clock.Elapsed() - start)},
                 {"cell_code", cell_code},
                 {"limits", limits},
                 {"inherited", runner.inherited().ToJson()}};
  if (Json machines = executor.machines(); !machines.empty())
    run.made_by["machines"] = std::move(machines);
  RETURN_IF_ERROR(run_judge.JudgeRun(run, !run.finished && references.busy()));
  if (MarkUnequal(executor.TakeUnequal(), run)) RETURN_IF_ERROR(run_judge.WriteResults(run));
  ForgetFlaky(run, asked, stored);
  for (const std::string& damaged : references.damaged()) setup.observer.OnWarning(damaged);
  if (!references.failure().empty()) setup.observer.OnWarning(references.failure());
  if (const Json differences = run.made_by["inherited"]["differences"]; !differences.empty()) {
    RETURN_IF_ERROR(directory.WriteRun(run));
    const Json& first = differences[0];
    return absl::DataLossError(absl::StrCat(
        first["cell"].get<std::string>(), " differs in ", first["what"].get<std::string>(),
        " from the stored observation of ", first["from"].get<std::string>(),
        ", which could have stood for it",
        differences.size() > 1 ? absl::StrCat(" (and ", differences.size() - 1, " more)") : "",
        ": what took these observations was measured again; ", directory.run_json().string(),
        " holds the corrected results, and the same command continues from them"));
  }
  return run;
}

}  // namespace

std::vector<PlannedCell> Included(const std::vector<PlannedCell>& plan) {
  std::vector<PlannedCell> included;
  std::copy_if(plan.begin(), plan.end(), std::back_inserter(included),
               [](const PlannedCell& planned) { return planned.included; });
  return included;
}

absl::StatusOr<std::vector<PreparedCell>> PrepareAll(const std::vector<PlannedCell>& plan,
                                                     Preparation& preparation,
                                                     const InterruptSignals& signals) {
  absl::StatusOr<std::vector<PreparedCell>> cells =
      preparation.PrepareAll(Included(plan), [&] { return signals.heard(); });
  // An interrupt ends uv, too: its errors mean nothing then.
  if (signals.heard()) return std::vector<PreparedCell>();
  return cells;
}

absl::StatusOr<std::unique_ptr<CellExecutor>> MakeWorkers(const ExecutorSetup& setup) {
  return MakeExecutor(setup, kIdleWorkers);
}

absl::StatusOr<RunRecord> Measure(const MeasurementSetup& setup, CellSupply& cells) {
  ASSIGN_OR_RETURN(const std::unique_ptr<CellExecutor> workers,
                   MakeExecutor({setup.installation, setup.options, setup.directory, setup.observer,
                                 setup.signals},
                                /*idle=*/0));
  return Measure(setup, *workers, cells);
}

absl::StatusOr<RunRecord> Measure(const MeasurementSetup& setup, std::vector<PreparedCell> cells) {
  ReadyCells ready(std::move(cells));
  return Measure(setup, ready);
}

absl::StatusOr<RunRecord> Measure(const MeasurementSetup& setup, CellExecutor& workers,
                                  CellSupply& cells) {
  NoFeed feed;
  return MeasureAll(setup, workers, feed, cells);
}

absl::StatusOr<RunRecord> Measure(const MeasurementSetup& setup, CellExecutor& workers,
                                  std::vector<PreparedCell> cells) {
  ReadyCells ready(std::move(cells));
  return Measure(setup, workers, ready);
}

absl::StatusOr<RunRecord> Measure(const MeasurementSetup& setup, CellExecutor& workers,
                                  CellFeed& feed) {
  ReadyCells none({});
  return MeasureAll(setup, workers, feed, none);
}

absl::Status JudgeMeasured(const Installation& installation, const RunDirectory& directory,
                           const std::vector<PreparedCell>& cells, RunRecord& run,
                           RunObserver& observer, const InterruptSignals& signals) {
  constexpr absl::Duration kPatience = absl::Milliseconds(100);
  constexpr int kAllCores = std::numeric_limits<int>::max();
  References references(installation, CacheDirectory(), directory,
                        [&](const std::string& what) { observer.OnNote(what); });
  for (const PreparedCell& cell : cells) {
    RETURN_IF_ERROR(WantReferences(references, cell));
    ASSIGN_OR_RETURN(const std::optional<CellFacts> facts, directory.ReadObservation(cell.record));
    if (facts && !cell.stopped) RETURN_IF_ERROR(WantReferencesOf(references, cell, facts->seen()));
  }
  while (!signals.heard() && (references.Advance(kAllCores) > 0 || references.busy()))
    absl::SleepFor(kPatience);
  run.finished = !signals.heard();
  RETURN_IF_ERROR(RunJudge(directory).JudgeRun(run, !run.finished && references.busy()));
  for (const std::string& damaged : references.damaged()) observer.OnWarning(damaged);
  if (!references.failure().empty()) observer.OnWarning(references.failure());
  return absl::OkStatus();
}

int ReusedCells(const RunRecord& run) {
  return static_cast<int>(WholeOf(run.made_by, "reused").value_or(0));
}

}  // namespace bkm
