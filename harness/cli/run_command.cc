// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/cli/command.h"
#include "harness/cli/console_observer.h"
#include "harness/cli/interrupt.h"
#include "harness/cli/outcome.h"
#include "harness/cli/selection.h"
#include "harness/model/engine_kind.h"
#include "harness/report/summary.h"
#include "harness/runner/judging.h"
#include "harness/runner/local_executor.h"
#include "harness/runner/preparation.h"
#include "harness/runner/references.h"
#include "harness/runner/repeats.h"
#include "harness/runner/runner.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

class RunCommandLine : public CliCommand {
 public:
  const char* name() const override { return "run"; }
  const char* summary() const override {
    return "Run the cells of a matrix, judge them, and write the table";
  }
  const char* examples() const override {
    return "What a run directory holds already is not measured again: after Ctrl-C the same "
           "command finishes the rest.\n"
           "Examples:\n"
           "  bkm run matrices/quickstart.json\n"
           "  bkm run matrices/bkm.json --filter engine=v0.8.0 --git-mirror ~/mirrors\n"
           "  bkm run --engine verl-torchtitan@git:verl@v0.8.0 --library git:torchtitan@baba6d82e "
           "--attention flex,varlen";
  }

  void AddOptions(CLI::App& app) override {
    selection_.AddOptions(app);
    app.add_option("--out", out_, "Run directory (default: runs/NAME)");
    app.add_option("--jobs,-j", jobs_, "Cells in flight (default: one per core)")
        ->check(CLI::Range(1, 1024));
    app.add_flag("--fresh", fresh_,
                 "Give each cell a process of its own instead of a fork of a warm one");
    app.add_flag("--rerun", rerun_, "Measure again what the run directory holds");
    app.add_option("--repeat", repeat_,
                   "Measure each cell N times; one whose verdict changes is reported as flaky")
        ->check(CLI::Range(1, 1000));
    app.add_flag("--no-controls", no_controls_,
                 "Do not add control cells; blame stays empty where it needs one");
    app.add_flag("--json", json_, "Print run.json to stdout");
    app.add_flag("--quiet,-q", quiet_, "No progress, no summary");
    // Tests plant faults to see that they are caught.
    app.add_option("--plant", plant_, "")->delimiter(',')->group("");
  }

  absl::StatusOr<int> Run() override {
    ASSIGN_OR_RETURN(const Installation installation, Installation::Find());
    RETURN_IF_ERROR(installation.CheckBuilt());
    ASSIGN_OR_RETURN(const Matrix matrix, selection_.LoadMatrix());
    ASSIGN_OR_RETURN(const std::vector<CellFilter> filters, selection_.Filters());
    ConsoleObserver observer(quiet_);
    InterruptSignals signals;
    ASSIGN_OR_RETURN(const std::unique_ptr<Preparation> preparation,
                     Preparation::Create(matrix,
                                         {.mirrors = selection_.GitMirrors(),
                                          .matrix_folder = selection_.MatrixFolder()},
                                         observer));
    absl::StatusOr<std::vector<PreparedCell>> cells =
        PrepareAll(matrix, filters, *preparation, signals);
    if (signals.heard()) {
      std::fprintf(stderr, "bkm: interrupted before a cell ran; what was fetched is kept\n");
      return kExitInterrupted;
    }
    RETURN_IF_ERROR(cells.status());
    if (cells->empty())
      return absl::InvalidArgumentError("no cell is in: bkm plan says why each is out");
    const RunDirectory directory(fs::absolute(out_.empty() ? "runs/" + matrix.name : out_));
    return Measure(installation, matrix, directory, WithRepeats(*std::move(cells), repeat_),
                   observer, signals);
  }

 private:
  // Stops early, with fewer cells or an error, once the user asked to.
  static absl::StatusOr<std::vector<PreparedCell>> PrepareAll(
      const Matrix& matrix, const std::vector<CellFilter>& filters, Preparation& preparation,
      const InterruptSignals& signals) {
    ASSIGN_OR_RETURN(const std::vector<PlannedCell> plan,
                     ExpandMatrix(matrix, filters, preparation.Environment()));
    std::vector<PreparedCell> cells;
    for (const PlannedCell& planned : plan) {
      if (!planned.included || signals.heard()) continue;
      ASSIGN_OR_RETURN(PreparedCell prepared, preparation.Prepare(planned));
      cells.push_back(std::move(prepared));
    }
    return cells;
  }

  absl::StatusOr<int> Measure(const Installation& installation, const Matrix& matrix,
                              const RunDirectory& directory, std::vector<PreparedCell> cells,
                              ConsoleObserver& observer, const InterruptSignals& signals) {
    ASSIGN_OR_RETURN(const std::string cell_code, installation.CellCodeDigest());
    RunRecord run{.matrix = matrix.name};
    RunJudge judge(directory);
    References references(installation, CacheDirectory(), directory);
    for (const PreparedCell& cell : cells) {
      if (cell.stopped || FindEngineKind(cell.record.cell.engine)->judged_by_ending_only) continue;
      RETURN_IF_ERROR(references.Want(cell.record.cell.probe, cell.probe_folder,
                                      cell.record.cell.probe.precision));
    }
    LocalExecutor executor({.cell_worker = installation.cell_worker(),
                            .python_code = installation.python_code(),
                            .kernels = installation.kernels(),
                            .preload = installation.preload(),
                            .slots = Slots(),
                            .fresh = fresh_,
                            .interrupt_fd = signals.fd(),
                            .log_path = [&](const std::string& key) {
                              return directory.worker_log(key.substr(0, 12));
                            }});
    RunnerHooks hooks;
    // While a golden or floor is still being computed there is nothing to judge by; all are judged
    // at the end.
    hooks.judge = [&](const CellRecord& cell) -> absl::StatusOr<std::optional<Verdict>> {
      if (references.busy()) return std::optional<Verdict>();
      return judge.JudgeCell(run, cell);
    };
    hooks.background = [&](bool may_start) { return references.Advance(may_start); };
    hooks.observed = [&](const PreparedCell& cell, const Json& observation) {
      return WantPrecisionThatRan(references, cell, observation);
    };
    const char* launcher = std::getenv("BKM_LAUNCHER");
    Runner runner({.slots = Slots(),
                   .controls = !no_controls_,
                   .reuse = !rerun_,
                   .task = {.cell_code = cell_code, .limits = matrix.limits, .plant = plant_},
                   .launcher = launcher ? launcher : "bkm"},
                  std::move(hooks), directory, executor, observer);
    const auto start = std::chrono::steady_clock::now();
    ASSIGN_OR_RETURN(const bool finished, runner.Run(std::move(cells), run));
    run.made_by = {
        {"slots", Slots()},
        {"fresh", fresh_},
        {"reused", observer.reused()},
        {"preload_s", executor.preload_s()},
        {"wall_s", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()},
        {"cell_code", cell_code}};
    run.finished = finished;
    RETURN_IF_ERROR(judge.JudgeRun(run));
    if (!references.failure().empty())
      std::fprintf(stderr, "bkm: %s\n", references.failure().c_str());
    return Report(directory, run);
  }

  // An engine that ran another precision than asked is judged by the floor of the one it ran.
  static absl::Status WantPrecisionThatRan(References& references, const PreparedCell& cell,
                                           const Json& observation) {
    const std::string ran = observation.value("/adapter/precision_ran"_json_pointer, std::string());
    if (ran.empty() || ran == cell.record.cell.probe.precision) return absl::OkStatus();
    return references.Want(cell.record.cell.probe, cell.probe_folder, ran);
  }

  int Slots() const {
    return jobs_ > 0 ? jobs_ : std::max(1u, std::thread::hardware_concurrency());
  }

  int Report(const RunDirectory& directory, const RunRecord& run) const {
    if (json_) {
      std::fputs(ToText(ToJson(run)).c_str(), stdout);
    } else if (!quiet_) {
      std::fputs(SummaryText(run).c_str(), stdout);
      std::printf("\nTable: %s\nOne cell's story: bkm explain %s CELL\n", directory.table().c_str(),
                  directory.root().c_str());
    }
    if (!run.finished)
      std::fprintf(stderr, "bkm: interrupted; the same command finishes the rest\n");
    return run.finished ? ExitCodeOf(run) : kExitInterrupted;
  }

  Selection selection_;
  std::string out_;
  int jobs_ = 0;
  int repeat_ = 1;
  bool fresh_ = false;
  bool rerun_ = false;
  bool no_controls_ = false;
  bool json_ = false;
  bool quiet_ = false;
  std::vector<std::string> plant_;
};

}  // namespace

std::unique_ptr<CliCommand> MakeRunCommand() { return std::make_unique<RunCommandLine>(); }

}  // namespace bkm
