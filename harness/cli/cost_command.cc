// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.

#include "absl/strings/str_cat.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/cli/console.h"
#include "harness/cli/run_commands.h"
#include "harness/report/cost.h"
#include "harness/runner/run_directory.h"
#include "harness/session/measurement.h"

namespace bkm {
namespace {

class CostCommand : public CliCommand {
 public:
  const char* name() const override { return "cost"; }
  const char* summary() const override { return "Show where the time of a run went"; }
  const char* examples() const override {
    return "The times are meaningful only if the run measured all of its cells without "
           "interruption.\n"
           "Example: bkm cost runs/bkm";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("run", run_, "Run directory")->required();
    app.add_flag("--json", json_, "Print JSON");
  }

  absl::StatusOr<int> Run() override {
    const RunDirectory directory(run_);
    ASSIGN_OR_RETURN(const RunRecord run, directory.ReadRun());
    CellCosts costs{.preload = FiniteOf(run.made_by, "preload_s").value_or(0)};
    for (const CellRecord& cell : run.cells) {
      if (cell.inherited_from) continue;
      ASSIGN_OR_RETURN(const std::optional<CellFacts> facts, directory.ReadObservation(cell));
      if (facts) costs.Add(cell.lock, facts->json());
    }
    const double wall_s = FiniteOf(run.made_by, "wall_s").value_or(0);
    const int slots = static_cast<int>(WholeOf(run.made_by, "slots").value_or(1));
    const int reused = ReusedCells(run);
    if (reused > 0) {
      return absl::FailedPreconditionError(
          absl::StrCat(reused,
                       " cells of this run reuse earlier results, so its wall time does not cover "
                       "them: run it with --rerun"));
    }
    Print(json_ ? ToText(CostJson(costs, wall_s, slots)) : CostText(costs, wall_s, slots));
    return kExitAsExpected;
  }

 private:
  std::string run_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakeCostCommand() { return std::make_unique<CostCommand>(); }

}  // namespace bkm
