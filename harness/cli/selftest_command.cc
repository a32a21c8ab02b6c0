// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/cli/all_commands.h"
#include "harness/cli/console.h"
#include "harness/cli/console_observer.h"
#include "harness/cli/executor_option.h"
#include "harness/cli/sandbox_option.h"
#include "harness/cli/selection.h"
#include "harness/runner/installation.h"
#include "harness/runner/preparation.h"
#include "harness/selftest/detection_table.h"
#include "harness/selftest/fault_selection.h"
#include "harness/selftest/mutation_session.h"
#include "harness/selftest/selftest_plan.h"
#include "harness/session/interrupt.h"
#include "harness/session/measurement.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

class SelftestCommand : public CliCommand {
 public:
  const char* name() const override { return "selftest"; }
  const char* summary() const override {
    return "Plant faults in correct cells and verify that each one is caught";
  }
  const char* examples() const override {
    return "harness/selftest/catalogue.json lists the faults, the cells that can have them, and "
           "the check that must catch each one.\n"
           "Exit 0: every fault was caught, except those that the catalogue says no check can see. "
           "Exit 1: a fault was missed, was caught for another reason or too close to the floor, "
           "was seen although the catalogue says that no check can see it, a cell without a fault "
           "was red, or the result differs from golden/detection.\n"
           "With --harmless, what is planted changes nothing that was asked, such as padding or a "
           "fused projection: harness/selftest/harmless.json lists it, and every cell must stay "
           "ok.\n"
           "With --mutate, the faults are small changes of the subjects' own sources: in lines "
           "that ran, chosen by a seed. A mutant counts if it runs to its end and changes an "
           "observed number; red means that it was caught. The same command continues an "
           "interrupted run. harness/selftest/mutations.json holds the operators and the seed. "
           "Exit 1: fewer mutants than --at-least were caught, or none counted.\n"
           "Examples:\n"
           "  bkm selftest          # a few faults of each kind\n"
           "  bkm selftest --all    # every fault, engine and attention\n"
           "  bkm selftest --fault 'mask-*' --engine torchtitan --attention flex\n"
           "  bkm selftest --harmless --all\n"
           "  bkm selftest --mutate --mutants 100 --engine torchtitan --model qwen3";
  }

  void AddOptions(CLI::App& app) override {
    const auto list = [&](const char* flags, std::vector<std::string>& into, const char* help) {
      app.add_option(flags, into, help)->delimiter(',');
    };
    auto* all = app.add_flag("--all", selection_.all, "Every fault on every pair (default: a few)");
    auto* fault = app.add_option("--fault", selection_.faults, "Fault ids (globs)")->delimiter(',');
    list("--engine", selection_.engines, "Engine kinds (globs)");
    list("--attention", selection_.attentions, "Attentions (globs)");
    list("--model", selection_.models, "Models (globs)");
    app.add_option("--matrix", matrix_, "Matrix of the pairs (default: matrices/selftest.json)");
    app.add_option("--out", out_,
                   "Run directory (default: runs/selftest; with --harmless: runs/harmless; with "
                   "--mutate: runs/mutation)");
    app.add_option("--git-mirror", git_mirror_, kGitMirrorHelp);
    app.add_option("--jobs,-j", jobs_, "Cells to run at once (default: one per core)")
        ->check(CLI::Range(1, 1024));
    sandbox_.AddTo(app);
    executor_.AddTo(app);
    app.add_flag("--rerun", rerun_, "Ignore existing results and run every cell again");
    auto* accept = app.add_flag("--accept", accept_, "Write the result to golden/detection");
    app.add_flag("--json", json_, "Print the result as JSON");
    app.add_flag("--quiet,-q", quiet_, "Print no progress");
    auto* harmless =
        app.add_flag("--harmless", harmless_, "Plant what must not change the verdict instead");
    harmless->excludes(accept);
    auto* mutate = app.add_flag("--mutate", mutate_, "Change the subjects' sources instead");
    mutate->excludes(all)->excludes(fault)->excludes(accept)->excludes(harmless);
    AddMutationOptions(app, mutate);
  }

  absl::StatusOr<int> Run() override {
    ASSIGN_OR_RETURN(const Installation installation, Installation::Find());
    RETURN_IF_ERROR(sandbox_.Check(installation));
    ASSIGN_OR_RETURN(const ExecutorMaker executor, executor_.Maker());
    if (mutate_ && executor) {
      return absl::InvalidArgumentError(
          "--mutate changes environments of this machine, which nodes of a cluster do not have: "
          "leave --executor out");
    }
    const fs::path file =
        matrix_.empty() ? installation.matrices() / "selftest.json" : fs::absolute(matrix_);
    ASSIGN_OR_RETURN(const Matrix matrix, ReadMatrix(file));
    ConsoleObserver observer(quiet_);
    InterruptSignals signals;
    ASSIGN_OR_RETURN(const std::unique_ptr<Preparation> preparation,
                     Preparation::Create(matrix,
                                         {.mirrors = GitMirrorFolder(git_mirror_),
                                          .matrix_folder = file.parent_path(),
                                          .sandbox = std::string(Name(sandbox_.level()))},
                                         observer));
    ASSIGN_OR_RETURN(const std::vector<PlannedCell> pairings,
                     ExpandMatrix(matrix, {}, preparation->Environment()));
    const RunDirectory directory(fs::absolute(!out_.empty() ? out_ : "runs/" + RunName(matrix)));
    const MeasurementSetup setup{installation,
                                 matrix,
                                 directory,
                                 // Controls serve blame, and planted faults need none.
                                 {.slots = jobs_,
                                  .controls = false,
                                  .reuse = !rerun_,
                                  .sandbox = sandbox_.level(),
                                  .executor = executor},
                                 observer,
                                 signals};
    return mutate_ ? Mutate(setup, pairings, *preparation)
                   : PlantFaults(setup, pairings, *preparation);
  }

 private:
  std::string RunName(const Matrix& matrix) const {
    return mutate_ ? "mutation" : harmless_ ? "harmless" : matrix.name;
  }

  void AddMutationOptions(CLI::App& app, CLI::Option* mutate) {
    app.add_option("--mutants", mutants_, "With --mutate: mutants of each pair")
        ->check(CLI::Range(1, 100000))
        ->capture_default_str()
        ->needs(mutate);
    app.add_option("--minutes", minutes_, "With --mutate: start no mutant after so many minutes")
        ->check(CLI::Range(0.1, 100000.0))
        ->needs(mutate);
    app.add_option("--seed", seed_, "With --mutate: another seed than the file's")->needs(mutate);
    app.add_option("--at-least", at_least_, "With --mutate: the share that must be caught")
        ->check(CLI::Range(0.0, 1.0))
        ->capture_default_str()
        ->needs(mutate);
  }

  absl::StatusOr<int> PlantFaults(const MeasurementSetup& setup,
                                  const std::vector<PlannedCell>& pairings,
                                  Preparation& preparation) const {
    ASSIGN_OR_RETURN(
        const Catalogue catalogue,
        ReadCatalogue(harmless_ ? setup.installation.harmless() : setup.installation.catalogue()));
    ASSIGN_OR_RETURN(const std::vector<CellFilter> filters, FiltersOf(selection_, catalogue));
    ASSIGN_OR_RETURN(const SelftestPlan plan, PlanSelftest(catalogue, pairings, filters));
    if (plan.cells.empty())
      return absl::InvalidArgumentError("no fault of the catalogue matches on any pair");
    ASSIGN_OR_RETURN(std::vector<PreparedCell> cells,
                     PrepareAll(plan.cells, preparation, setup.signals));
    if (setup.signals.heard()) return kExitInterrupted;
    ASSIGN_OR_RETURN(const RunRecord run, Measure(setup, std::move(cells)));
    return Report(setup.installation, plan, run);
  }

  absl::StatusOr<int> Mutate(const MeasurementSetup& setup,
                             const std::vector<PlannedCell>& pairings,
                             Preparation& preparation) const {
    ASSIGN_OR_RETURN(const Json json, ReadJsonFile(setup.installation.mutations()));
    MutationOptions options{.mutants = mutants_};
    ASSIGN_OR_RETURN(options.settings,
                     MutationSettingsFromJson(json, setup.installation.mutations().string()));
    if (seed_) options.settings.seed = *seed_;
    ASSIGN_OR_RETURN(const std::vector<CellFilter> filters, FiltersOf(selection_, Catalogue()));
    std::vector<PlannedCell> chosen;
    for (const PlannedCell& pairing : pairings) {
      if (filters.empty() ||
          std::any_of(filters.begin(), filters.end(),
                      [&](const CellFilter& filter) { return filter.Matches(pairing.cell); }))
        chosen.push_back(pairing);
    }
    const RealClock clock;
    const absl::Duration start = clock.Elapsed();
    ASSIGN_OR_RETURN(const std::vector<PreparedCell> cells,
                     PrepareAll(chosen, preparation, setup.signals));
    if (cells.empty() && !setup.signals.heard())
      return absl::InvalidArgumentError("no pair of the matrix matches");
    std::vector<MutatedPair> pairs;
    for (size_t i = 0; i < cells.size() && !setup.signals.heard(); ++i) {
      // The time that is left is divided evenly.
      const absl::Duration now = clock.Elapsed();
      if (minutes_)
        options.until = now + (start + absl::Minutes(*minutes_) - now) / (cells.size() - i);
      const RunDirectory directory(setup.directory.root() /
                                   CellFolderName(cells[i].record.cell, cells[i].record.id));
      const MeasurementSetup own{setup.installation, setup.matrix,   directory,
                                 setup.options,      setup.observer, setup.signals};
      ASSIGN_OR_RETURN(pairs.emplace_back(), MutatePair(own, cells[i], options));
    }
    return ReportMutations(pairs, setup.signals.heard());
  }

  absl::StatusOr<int> ReportMutations(const std::vector<MutatedPair>& pairs,
                                      bool interrupted) const {
    if (json_)
      Print(ToText(MutationJson(pairs, at_least_)));
    else
      Print(MutationText(pairs, at_least_));
    if (interrupted) {
      PrintErrorf("bkm: interrupted; run the same command to finish\n");
      return kExitInterrupted;
    }
    const std::optional<double> rate = CountsOf(pairs).rate();
    return rate && *rate >= at_least_ ? kExitAsExpected : kExitVerdictsDiffer;
  }

  absl::StatusOr<int> Report(const Installation& installation, const SelftestPlan& plan,
                             const RunRecord& run) const {
    std::vector<Detection> detections;
    bool as_expected = true;
    for (const CellRecord& cell : run.cells) {
      const auto fault = plan.faults.find(cell.id);
      detections.push_back(Assess(fault == plan.faults.end() ? nullptr : fault->second, cell));
      as_expected &= detections.back().outcome == DetectionOutcome::kAsExpected;
    }
    if (json_)
      Print(ToText(DetectionJson(detections)));
    else
      Print(DetectionText(detections));
    if (!run.finished) {
      PrintErrorf("bkm: interrupted; run the same command to finish\n");
      return kExitInterrupted;
    }
    // Nothing harmless has a golden result other than `ok`.
    if (harmless_) return as_expected ? kExitAsExpected : kExitVerdictsDiffer;
    const fs::path golden_file = installation.detections() / (run.matrix + ".json");
    ASSIGN_OR_RETURN(const std::vector<GoldenDetection> golden, ReadGoldenDetections(golden_file));
    const bool whole = selection_.whole();
    if (accept_) {
      if (!as_expected)
        return absl::FailedPreconditionError(
            "--accept: a fault was not caught as the catalogue requires");
      return Accept(golden_file, golden, detections, whole);
    }
    const std::vector<std::string> differences = DifferencesFrom(golden, detections, whole);
    for (const std::string& difference : differences)
      PrintErrorf("bkm: golden/detection: %s\n", difference.c_str());
    if (!differences.empty())
      PrintErrorf("bkm: to accept: bkm selftest%s --accept\n", whole ? " --all" : "");
    return as_expected && differences.empty() ? kExitAsExpected : kExitVerdictsDiffer;
  }

  // A partial run keeps the golden rows of cells that did not run.
  static absl::StatusOr<int> Accept(const fs::path& file,
                                    const std::vector<GoldenDetection>& before,
                                    const std::vector<Detection>& detections, bool whole) {
    const std::vector<GoldenDetection> kept = whole ? std::vector<GoldenDetection>() : before;
    RETURN_IF_ERROR(WriteFile(file, ToText(ToJson(Merged(kept, GoldenOf(detections, before))))));
    Printf("wrote %s\n", file.c_str());
    return kExitAsExpected;
  }

  FaultSelection selection_;
  SandboxOption sandbox_;
  ExecutorOption executor_{MakeRayExecutors};
  std::string matrix_;
  std::string out_;
  std::string git_mirror_;
  int jobs_ = 0;
  bool rerun_ = false;
  bool accept_ = false;
  bool json_ = false;
  bool quiet_ = false;
  bool harmless_ = false;
  bool mutate_ = false;
  int mutants_ = 60;
  std::optional<double> minutes_;
  std::optional<uint64_t> seed_;
  double at_least_ = 0.98;
};

}  // namespace

std::unique_ptr<CliCommand> MakeSelftestCommand() { return std::make_unique<SelftestCommand>(); }

}  // namespace bkm
