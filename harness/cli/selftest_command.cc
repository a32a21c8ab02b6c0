// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/cli/command.h"
#include "harness/cli/console.h"
#include "harness/cli/console_observer.h"
#include "harness/cli/sandbox_option.h"
#include "harness/cli/selection.h"
#include "harness/runner/installation.h"
#include "harness/runner/preparation.h"
#include "harness/selftest/detection_table.h"
#include "harness/selftest/fault_selection.h"
#include "harness/session/interrupt.h"
#include "harness/session/measurement.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

class SelftestCommand : public CliCommand {
 public:
  const char* name() const override { return "selftest"; }
  const char* summary() const override {
    return "Plant known faults in correct cells and verify that each one is caught";
  }
  const char* examples() const override {
    return "harness/selftest/catalogue.json lists the faults, the cells that can have them, and "
           "the check that must catch each one.\n"
           "Exit 0: every fault was caught. Exit 1: a fault was missed, was caught for another "
           "reason or too close to the floor, a cell without a fault was red, or the result "
           "differs from golden/detection.\n"
           "Examples:\n"
           "  bkm selftest          # a few faults of each kind\n"
           "  bkm selftest --all    # every fault, engine and attention\n"
           "  bkm selftest --fault 'mask-*' --engine torchtitan --attention flex";
  }

  void AddOptions(CLI::App& app) override {
    const auto list = [&](const char* flags, std::vector<std::string>& into, const char* help) {
      app.add_option(flags, into, help)->delimiter(',');
    };
    app.add_flag("--all", selection_.all, "Every fault on every pair (default: a few)");
    list("--fault", selection_.faults, "Fault ids (globs)");
    list("--engine", selection_.engines, "Engine kinds (globs)");
    list("--attention", selection_.attentions, "Attentions (globs)");
    list("--model", selection_.models, "Models (globs)");
    app.add_option("--matrix", matrix_, "Matrix of the pairs (default: matrices/selftest.json)");
    app.add_option("--out", out_, "Run directory (default: runs/selftest)");
    app.add_option("--git-mirror", git_mirror_, kGitMirrorHelp);
    app.add_option("--jobs,-j", jobs_, "Cells to run at once (default: one per core)")
        ->check(CLI::Range(1, 1024));
    sandbox_.AddTo(app);
    app.add_flag("--rerun", rerun_, "Ignore existing results and run every cell again");
    app.add_flag("--accept", accept_, "Write the result to golden/detection");
    app.add_flag("--json", json_, "Print the detection table as JSON");
    app.add_flag("--quiet,-q", quiet_, "Print no progress");
  }

  absl::StatusOr<int> Run() override {
    ASSIGN_OR_RETURN(const Installation installation, Installation::Find());
    RETURN_IF_ERROR(sandbox_.Check(installation));
    ASSIGN_OR_RETURN(const Catalogue catalogue, ReadCatalogue(installation.catalogue()));
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
    ASSIGN_OR_RETURN(const std::vector<CellFilter> filters, FiltersOf(selection_, catalogue));
    ASSIGN_OR_RETURN(const SelftestPlan plan, PlanSelftest(catalogue, pairings, filters));
    if (plan.cells.empty() && plan.invisible.empty())
      return absl::InvalidArgumentError("no fault of the catalogue matches on any pair");
    ASSIGN_OR_RETURN(std::vector<PreparedCell> cells,
                     PrepareAll(plan.cells, *preparation, signals));
    if (signals.heard()) return kExitInterrupted;
    const RunDirectory directory(fs::absolute(out_.empty() ? "runs/" + matrix.name : out_));
    // Controls serve blame, and planted faults need none.
    ASSIGN_OR_RETURN(
        const RunRecord run,
        Measure({installation,
                 matrix,
                 directory,
                 {.slots = jobs_, .controls = false, .reuse = !rerun_, .sandbox = sandbox_.level()},
                 observer,
                 signals},
                std::move(cells)));
    return Report(installation, plan, run);
  }

 private:
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
      Print(ToText(DetectionJson(detections, plan.invisible)));
    else
      Print(DetectionText(detections, plan.invisible));
    if (!run.finished) {
      PrintErrorf("bkm: interrupted; run the same command to finish\n");
      return kExitInterrupted;
    }
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
  std::string matrix_;
  std::string out_;
  std::string git_mirror_;
  int jobs_ = 0;
  bool rerun_ = false;
  bool accept_ = false;
  bool json_ = false;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakeSelftestCommand() { return std::make_unique<SelftestCommand>(); }

}  // namespace bkm
