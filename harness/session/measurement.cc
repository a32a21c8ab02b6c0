// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/session/measurement.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/model/engine_kind.h"
#include "harness/numerics/golden_key.h"
#include "harness/runner/judging.h"
#include "harness/runner/observation_store.h"
#include "harness/runner/references.h"
#include "harness/runner/runner.h"

namespace bkm {
namespace {

// Workers without work that stay where their runtime may be asked for again.
constexpr int kIdleWorkers = 2;

int Slots(const MeasurementOptions& options) {
  return options.slots > 0 ? options.slots
                           : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

LocalExecutorOptions WorkerOptions(const Installation& installation,
                                   const MeasurementOptions& options, const RunDirectory& directory,
                                   int idle, const InterruptSignals& signals) {
  return {.cell_worker = installation.cell_worker(),
          .python_code = installation.python_code(),
          .kernels = installation.kernels(),
          .preload = installation.preload(),
          .slots = Slots(options),
          .fresh = options.fresh,
          .idle = idle,
          .interrupt_fd = signals.fd(),
          .log_path = [directory](const std::string& key) {
            return directory.worker_log(key.substr(0, 12));
          }};
}

// An engine that ran another precision than asked is judged by the floor of the one it ran.
absl::Status WantPrecisionThatRan(References& references, const PreparedCell& cell,
                                  const Json& observation) {
  const std::string ran = observation.value("/adapter/precision_ran"_json_pointer, std::string());
  if (ran.empty() || ran == cell.record.cell.probe.precision) return absl::OkStatus();
  return references.Want(cell.record.cell.probe, cell.probe_folder, ran);
}

absl::Status WantAll(References& references, const std::vector<PreparedCell>& cells) {
  for (const PreparedCell& cell : cells) {
    if (cell.stopped || FindEngineKind(cell.record.cell.engine)->judged_by_ending_only) continue;
    RETURN_IF_ERROR(references.Want(cell.record.cell.probe, cell.probe_folder,
                                    cell.record.cell.probe.precision));
  }
  return absl::OkStatus();
}

// The observations of earlier runs. Without them, or once the disk is full, a run only takes
// longer: what goes wrong here is said once and stops nothing.
class Kept {
 public:
  Kept(bool wanted, const TaskSettings& settings) {
    if (!wanted) return;
    absl::StatusOr<std::unique_ptr<ObservationStore>> store = Open(settings);
    if (store.ok()) {
      store_ = *std::move(store);
    } else {
      Stop(store.status());
    }
  }

  std::optional<KeptObservation> Find(const PreparedCell& cell) {
    if (!store_) return std::nullopt;
    absl::StatusOr<std::optional<KeptObservation>> found = store_->Find(cell);
    if (found.ok()) return *std::move(found);
    Stop(found.status());
    return std::nullopt;
  }
  void Keep(const PreparedCell& cell, const Json& observation, const std::filesystem::path& dir) {
    if (store_) Check(store_->Keep(cell, observation, dir));
  }
  void Forget(const PreparedCell& cell) {
    if (store_) Check(store_->Forget(cell));
  }

 private:
  static absl::StatusOr<std::unique_ptr<ObservationStore>> Open(const TaskSettings& settings) {
    const char* folder = std::getenv("BKM_OBSERVATIONS");
    ASSIGN_OR_RETURN(std::string cpu, CpuFeatures());
    return ObservationStore::Open(folder && *folder ? folder : CacheDirectory() / "observations",
                                  settings, std::move(cpu));
  }
  void Check(const absl::Status& status) {
    if (!status.ok()) Stop(status);
  }
  void Stop(const absl::Status& why) {
    std::fprintf(stderr, "bkm: %s; going on without the observations of earlier runs\n",
                 std::string(why.message()).c_str());
    store_.reset();
  }
  std::unique_ptr<ObservationStore> store_;
};

std::vector<PreparedCell> Repeated(const std::vector<PreparedCell>& cells) {
  std::set<std::string> repeated;
  for (const PreparedCell& cell : cells) repeated.insert(cell.record.repeat_of);
  std::vector<PreparedCell> found;
  for (const PreparedCell& cell : cells) {
    if (repeated.contains(cell.record.id)) found.push_back(cell);
  }
  return found;
}

}  // namespace

absl::StatusOr<std::vector<PreparedCell>> PrepareAll(const std::vector<PlannedCell>& plan,
                                                     Preparation& preparation,
                                                     const InterruptSignals& signals) {
  std::vector<PreparedCell> cells;
  for (const PlannedCell& planned : plan) {
    if (!planned.included || signals.heard()) continue;
    ASSIGN_OR_RETURN(PreparedCell prepared, preparation.Prepare(planned));
    cells.push_back(std::move(prepared));
  }
  return cells;
}

std::unique_ptr<LocalExecutor> MakeWorkers(const Installation& installation,
                                           const MeasurementOptions& options,
                                           const RunDirectory& directory,
                                           const InterruptSignals& signals) {
  return std::make_unique<LocalExecutor>(
      WorkerOptions(installation, options, directory, kIdleWorkers, signals));
}

absl::StatusOr<RunRecord> Measure(const Installation& installation, const Matrix& matrix,
                                  const RunDirectory& directory, std::vector<PreparedCell> cells,
                                  const MeasurementOptions& options, RunObserver& observer,
                                  const InterruptSignals& signals) {
  ASSIGN_OR_RETURN(const std::string cell_code, installation.CellCodeDigest());
  const int slots = Slots(options);
  RunRecord run{.matrix = matrix.name};
  RunJudge judge(directory);
  References references(installation, CacheDirectory(), directory);
  RETURN_IF_ERROR(WantAll(references, cells));
  // A feed may come back to a runtime.
  LocalExecutor own(
      WorkerOptions(installation, options, directory, options.feed ? kIdleWorkers : 0, signals));
  LocalExecutor& executor = options.workers ? *options.workers : own;
  const double preload_before_s = executor.preload_s();
  const TaskSettings task{.cell_code = cell_code, .limits = matrix.limits};
  Kept kept(options.store && options.reuse && !options.fresh, task);
  std::vector<PreparedCell> asked = cells;
  RunnerHooks hooks;
  // While a golden or floor is still being computed there is nothing to judge by; all are judged
  // at the end.
  hooks.judge = [&](const CellRecord& cell) -> absl::StatusOr<std::optional<Verdict>> {
    if (references.busy()) return std::optional<Verdict>();
    return judge.JudgeCell(run, cell);
  };
  hooks.background = [&](bool may_start) { return references.Advance(may_start); };
  hooks.observed = [&](const PreparedCell& cell, const Json& observation) {
    kept.Keep(cell, observation, directory.cell(cell.record));
    return WantPrecisionThatRan(references, cell, observation);
  };
  hooks.kept = [&](const PreparedCell& cell) { return kept.Find(cell); };
  if (options.feed) {
    hooks.feed = [&](int room) -> absl::StatusOr<std::vector<PreparedCell>> {
      ASSIGN_OR_RETURN(std::vector<PreparedCell> fed, options.feed(room));
      RETURN_IF_ERROR(WantAll(references, fed));
      asked.insert(asked.end(), fed.begin(), fed.end());
      return fed;
    };
  }
  hooks.judged = options.judged;
  const char* launcher = std::getenv("BKM_LAUNCHER");
  Runner runner({.slots = slots,
                 .controls = options.controls,
                 .reuse = options.reuse,
                 .task = task,
                 .launcher = launcher ? launcher : "bkm"},
                std::move(hooks), directory, executor, observer);
  const auto start = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const bool finished, runner.Run(std::move(cells), run));
  run.made_by = {
      {"slots", slots},
      {"fresh", options.fresh},
      {"reused", runner.reused()},
      {"preload_s", executor.preload_s() - preload_before_s},
      {"wall_s", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()},
      {"cell_code", cell_code}};
  run.finished = finished;
  RETURN_IF_ERROR(judge.JudgeRun(run, !finished && references.busy()));
  const std::vector<PreparedCell> repeated = Repeated(asked);
  for (const CellRecord& cell : run.cells) {
    if (!cell.stability || !cell.stability->flaky()) continue;
    for (const PreparedCell& first : repeated) {
      if (first.record.id == cell.id) kept.Forget(first);
    }
  }
  if (!references.failure().empty())
    std::fprintf(stderr, "bkm: %s\n", references.failure().c_str());
  return run;
}

int ReusedCells(const RunRecord& run) { return run.made_by.value("reused", 0); }

}  // namespace bkm
