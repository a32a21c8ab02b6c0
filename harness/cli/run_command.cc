// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <cstdio>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "harness/base/check.h"
#include "harness/base/clock.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/cli/console.h"
#include "harness/cli/console_observer.h"
#include "harness/cli/executor_option.h"
#include "harness/cli/outcome.h"
#include "harness/cli/plan_options.h"
#include "harness/cli/run_commands.h"
#include "harness/cli/sandbox_option.h"
#include "harness/cli/selection.h"
#include "harness/model/observation.h"
#include "harness/report/command_text.h"
#include "harness/report/summary.h"
#include "harness/runner/installation.h"
#include "harness/runner/preparation.h"
#include "harness/runner/repeats.h"
#include "harness/session/expected_run.h"
#include "harness/session/interrupt.h"
#include "harness/session/measurement.h"
#include "harness/session/shards.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

class RunCommandLine : public CliCommand {
 public:
  explicit RunCommandLine(const WholeProgram& whole)
      : executor_(whole.ray), plan_options_(whole.urgent_first), check_(whole.static_check) {}

  const char* name() const override { return "run"; }
  const char* summary() const override {
    return "Run the cells of a matrix, judge them and write the table";
  }
  const char* examples() const override {
    return "The same command resumes an interrupted run: it runs only the cells that have no "
           "result yet. Results are also reused from another run whose inputs were identical; "
           "run.json marks such cells with \"inherited_from\".\n"
           "The file MATRIX.expect.txt beside the matrix lists the expected failures. A red "
           "cell that is not listed runs a second time before it is reported. A filtered run "
           "cannot detect stale expectations.\n"
           "Exit 0: every result is as expected. Without MATRIX.expect.txt, red cells do not "
           "change the exit code. Exit 1: a result differs from what is expected, or a cell is "
           "spurious or flaky. Exit 2: in a cell, bkm's own code failed (harness-error). Exit 3: "
           "interrupted, or the time budget was over before all cells "
           "ran.\n"
           "Examples:\n"
           "  bkm run matrices/quickstart.json\n"
           "  bkm run matrices/bkm.json --filter engine=v0.8.0 --git-mirror ~/mirrors\n"
           "  bkm run --engine verl-torchtitan@git:verl@v0.8.0 --library git:torchtitan@baba6d82e "
           "--attention flex,varlen";
  }

  void AddOptions(CLI::App& app) override {
    selection_.AddOptions(app);
    plan_options_.AddTo(app);
    app.add_option("--time-budget", time_budget_,
                   "Start no cell after this time (2h, 90m), preparation included; cells that run "
                   "then end and are judged. The same command runs the others")
        ->check(CLI::Validator(CheckDuration, "DURATION"));
    app.add_option("--out", out_, "Run directory (default: runs/NAME)");
    app.add_option("--jobs,-j", jobs_, "Cells to run at once (default: one per core)")
        ->check(CLI::Range(1, 1024));
    sandbox_.AddTo(app);
    executor_.AddTo(app);
    app.add_flag("--fresh", fresh_,
                 "Start a new process for each cell instead of forking a loaded worker");
    app.add_flag("--rerun", rerun_, "Ignore existing results and run every cell again");
    app.add_flag("--no-store", no_store_,
                 "Neither reuse results of other runs nor offer these results to them");
    app.add_option("--verify-inherited", verify_inherited_,
                   "Measure one in N cells that could reuse a result of another cell; a difference "
                   "discards that result and fails the run (default: 20; 0: none)")
        ->check(CLI::Range(0, 1000000));
    app.add_option("--repeat", repeat_,
                   "Run each cell N times; a cell whose verdict varies is flaky")
        ->check(CLI::Range(1, 1000));
    app.add_option("--shard", shard_,
                   "Run part i of n, as i/n, for example 2/3; bkm merge joins the n runs");
    app.add_flag("--no-controls", no_controls_,
                 "Do not add control cells; blame that depends on a control stays empty");
    app.add_flag(
        "--static-check", static_check_,
        "Skip cells whose imports cannot succeed according to the sources (see bkm apicheck)");
    app.add_option(
        "--expect", expect_,
        "File of expected failures (default: MATRIX.expect.txt beside the matrix, if it exists)");
    app.add_flag("--json", json_, "Print run.json to stdout");
    app.add_flag("--quiet,-q", quiet_, "Print neither progress nor summary");
    // Hidden: tests plant faults to prove that they are caught.
    app.add_option("--plant", plant_, "")->delimiter(',')->group("");
  }

  absl::StatusOr<int> Run() override {
    const absl::Duration start = RealClock().Elapsed();
    ASSIGN_OR_RETURN(const Installation installation, Installation::Find());
    RETURN_IF_ERROR(sandbox_.Check(installation));
    ASSIGN_OR_RETURN(const ExecutorMaker executor, executor_.Maker());
    ASSIGN_OR_RETURN(const Matrix matrix, selection_.LoadMatrix());
    ASSIGN_OR_RETURN(const std::vector<CellFilter> filters, selection_.Filters());
    ASSIGN_OR_RETURN(const std::optional<Expectations> expectations,
                     FindExpectations(expect_, selection_.MatrixFile()));
    ConsoleObserver observer(quiet_);
    InterruptSignals signals;
    ASSIGN_OR_RETURN(const std::unique_ptr<Preparation> preparation,
                     Preparation::Create(matrix,
                                         {.mirrors = selection_.GitMirrors(),
                                          .matrix_folder = selection_.MatrixFolder(),
                                          .sandbox = std::string(Name(sandbox_.level()))},
                                         observer));
    const RunDirectory directory(fs::absolute(out_.empty() ? "runs/" + matrix.name : out_));
    // Preparing takes minutes: another runner of this directory is noticed before that.
    if (fs::exists(directory.root())) RETURN_IF_ERROR(directory.Lock().status());
    ASSIGN_OR_RETURN(const std::vector<PlannedCell> plan,
                     Plan(installation, matrix, filters, directory, *preparation, observer));
    const bool all_cells =
        filters.empty() && !static_check_ && plant_.empty() && !plan_options_.covers();
    // Only a whole run can detect stale expectations, and only a whole run may rewrite them.
    const bool whole = all_cells && shard_.empty();
    std::vector<PlannedCell> included = Included(plan);
    if (included.empty())
      return absl::InvalidArgumentError("no cell is included: bkm plan shows why");
    if (executor) RETURN_IF_ERROR(CheckForCluster(included));
    ASSIGN_OR_RETURN(const std::optional<ShardRecord> shard, TakeShard(all_cells, included));
    absl::StatusOr<std::unique_ptr<PreparingCells>> cells =
        preparation->Begin(included, [&] { return signals.heard(); });
    if (signals.heard()) {
      PrintErrorf("bkm: interrupted before any cell ran; fetched files are kept\n");
      return kExitInterrupted;
    }
    RETURN_IF_ERROR(cells.status());
    return MeasureAndReport({installation,
                             matrix,
                             directory,
                             {.slots = jobs_,
                              .fresh = fresh_,
                              .controls = !no_controls_,
                              .reuse = !rerun_,
                              .store = !no_store_,
                              .verify_inherited = verify_inherited_,
                              .sandbox = sandbox_.level(),
                              .start_until = start + TimeBudget(),
                              .executor = executor},
                             observer,
                             signals},
                            **cells, expectations, whole, shard);
  }

 private:
  static std::string CheckDuration(const std::string& text) {
    absl::Duration duration;
    const bool good = absl::ParseDuration(text, &duration) && duration > absl::ZeroDuration();
    return good ? "" : absl::StrCat("'", text, "' is not a duration such as 2h or 90m");
  }
  absl::Duration TimeBudget() const {
    absl::Duration budget = absl::InfiniteDuration();
    const bool read = time_budget_.empty() || absl::ParseDuration(time_budget_, &budget);
    HARNESS_CHECK(read);
    return budget;
  }

  // Measures all cells, and the unexpected failures once more.
  absl::StatusOr<int> MeasureAndReport(MeasurementSetup setup, CellSupply& cells,
                                       const std::optional<Expectations>& expectations, bool whole,
                                       const std::optional<ShardRecord>& shard) const {
    RepeatedCells repeated(cells, repeat_);
    ASSIGN_OR_RETURN(RunRecord run, Measure(setup, repeated));
    std::vector<Surprise> surprises = SurprisesOf(expectations, run, whole);
    const std::vector<PreparedCell>& all = repeated.cells();
    std::vector<PreparedCell> more = WithSuspects(all, run, surprises);
    if (const size_t suspects = more.size() - all.size(); suspects > 0) {
      if (!quiet_)
        setup.observer.OnNote(
            absl::StrCat("re-running ", suspects, " unexpected failure", suspects == 1 ? "" : "s"));
      setup.options.reuse = true;
      ReadyCells again(std::move(more));
      ASSIGN_OR_RETURN(run, Measure(setup, again));
      surprises = SurprisesOf(expectations, run, whole);
    }
    run.made_by["whole"] = whole;
    if (shard) run.made_by["shard"] = WriteFields(*shard);
    RETURN_IF_ERROR(setup.directory.WriteRun(run));
    RETURN_IF_ERROR(WriteRetryList(setup.directory, run));
    if (expectations && run.finished && surprises.empty() && !quiet_)
      PrintErrorf("bkm: every red cell is an expected failure\n");
    return Report(setup.directory, run, surprises,
                  RealClock().Elapsed() >= setup.options.start_until);
  }

  // Ray hides the GPUs of a node from processes that reserve none, as those of bkm do.
  static absl::Status CheckForCluster(const std::vector<PlannedCell>& cells) {
    for (const PlannedCell& planned : cells) {
      if (planned.cell.probe.device == "cpu" || planned.is_stopped()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("cells on a cluster have no GPU yet, and ", planned.id,
                       " asks for one: leave it out with --filter device=cpu, or use bkm pack and "
                       "bkm work"));
    }
    return absl::OkStatus();
  }

  // Leaves only the cells of the shard in `included`. Absent without --shard.
  absl::StatusOr<std::optional<ShardRecord>> TakeShard(bool whole,
                                                       std::vector<PlannedCell>& included) const {
    if (shard_.empty()) return std::optional<ShardRecord>();
    ASSIGN_OR_RETURN(const Shard asked, ParseShard(shard_));
    ASSIGN_OR_RETURN(ShardRecord shard, ChooseShard(included, asked));
    shard.whole = whole;
    std::vector<PlannedCell> chosen;
    for (const int64_t place : shard.places) chosen.push_back(included[static_cast<size_t>(place)]);
    included = std::move(chosen);
    return std::optional<ShardRecord>(std::move(shard));
  }

  absl::StatusOr<std::vector<PlannedCell>> Plan(const Installation& installation,
                                                const Matrix& matrix,
                                                const std::vector<CellFilter>& filters,
                                                const RunDirectory& directory,
                                                Preparation& preparation,
                                                RunObserver& observer) const {
    ASSIGN_OR_RETURN(std::vector<PlannedCell> plan,
                     ExpandMatrix(matrix, filters, preparation.Environment()));
    for (PlannedCell& planned : plan) {
      planned.cell.plant = plant_;
      planned.id = CellId(planned.cell);
    }
    ASSIGN_OR_RETURN(const PlanOptions::Applied applied, plan_options_.Apply(installation, plan));
    if (!quiet_) PrintErrorf("%s", applied.Text().c_str());
    std::set<std::string> notes;
    for (const PlannedCell& planned : plan) {
      if (planned.included && !planned.note.empty() && notes.insert(planned.note).second)
        observer.OnNote(absl::StrCat("some cells run ", planned.note));
    }
    if (!static_check_) return plan;
    if (check_ == nullptr) return NeedsWholeProgram("--static-check");
    ASSIGN_OR_RETURN(const int red, check_(selection_.GitMirrors(), selection_.MatrixFolder(),
                                           matrix, plan, observer));
    if (!quiet_ && red > 0) PrintErrorf("bkm: %d cells fail the static check\n", red);
    for (PlannedCell& planned : plan) {
      if (IsMeasured(directory, planned)) planned.statically_red.clear();
    }
    return plan;
  }

  // A measured result is stronger evidence than the static check.
  static bool IsMeasured(const RunDirectory& directory, const PlannedCell& planned) {
    const CellRecord record{
        .cell = planned.cell, .id = planned.id, .dir = CellDirectory(planned.cell, planned.id)};
    const auto facts = directory.ReadObservation(record);
    return facts.ok() && *facts && (*facts)->ending().kind != EndingKind::kApiCheck;
  }

  int Report(const RunDirectory& directory, const RunRecord& run,
             const std::vector<Surprise>& surprises, bool out_of_time) const {
    if (json_) {
      Print(ToText(ToJson(run)));
    } else if (!quiet_) {
      Print(SummaryText(run));
      Printf("\nTable: %s\nDetails of a cell: bkm explain %s CELL\n", directory.table().c_str(),
             ShellWord(directory.root()));
    }
    (json_ || quiet_ ? PrintError : Print)(SurprisesText(surprises));
    if (!run.finished) {
      PrintErrorf("bkm: %s; run the same command to finish\n",
                  out_of_time ? "the time budget is over" : "interrupted");
      return kExitInterrupted;
    }
    const int code = ExitCodeOf(run);
    return code == kExitAsExpected && !surprises.empty() ? kExitVerdictsDiffer : code;
  }

  Selection selection_;
  SandboxOption sandbox_;
  ExecutorOption executor_;
  PlanOptions plan_options_;
  std::string time_budget_;
  std::string out_;
  std::string expect_;
  std::string shard_;
  int jobs_ = 0;
  int repeat_ = 1;
  bool fresh_ = false;
  bool rerun_ = false;
  bool no_store_ = false;
  int verify_inherited_ = MeasurementOptions().verify_inherited;
  bool no_controls_ = false;
  StaticCheck check_;
  bool static_check_ = false;
  bool json_ = false;
  bool quiet_ = false;
  std::vector<std::string> plant_;
};

}  // namespace

std::unique_ptr<CliCommand> MakeRunCommand(const WholeProgram& whole) {
  return std::make_unique<RunCommandLine>(whole);
}

}  // namespace bkm
