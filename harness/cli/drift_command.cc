// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/base/status_macros.h"
#include "harness/cli/all_commands.h"
#include "harness/cli/baseline_folder.h"
#include "harness/cli/console.h"
#include "harness/report/labels.h"
#include "harness/runner/baseline.h"

namespace bkm {
namespace {

class DriftCommand : public CliCommand {
 public:
  const char* name() const override { return "drift"; }
  const char* summary() const override {
    return "Compare a run with the last accepted run of each cell";
  }
  const char* examples() const override {
    return "bit-equal: every sampled number has the same bits. within-floor: rounding explains "
           "the difference. real: rounding does not explain it.\n"
           "Exit 0: nothing changed. Exit 1: a verdict or a number changed.\n"
           "Example: bkm drift runs/bkm && bkm accept runs/bkm";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("run", run_, "Run directory")->required();
    app.add_option("--baseline", baseline_, kBaselineHelp);
    app.add_flag("--json", json_, "Print as JSON");
  }

  absl::StatusOr<int> Run() override {
    const RunDirectory directory(run_);
    ASSIGN_OR_RETURN(const RunRecord run, directory.ReadRun());
    ASSIGN_OR_RETURN(const Baseline baseline,
                     Baseline::Read(BaselineFolder(baseline_, run_, run.matrix)));
    RunJudge judge(directory);
    ASSIGN_OR_RETURN(const std::vector<CellMovement> movements,
                     CompareWithBaseline(baseline, run, judge));
    bool moved = false;
    for (const CellMovement& movement : movements) {
      moved = moved || movement.movement == Movement::kReal ||
              movement.movement == Movement::kVerdictChanged;
    }
    if (json_) {
      PrintJson(movements);
    } else {
      PrintText(movements, baseline);
    }
    return moved ? kExitVerdictsDiffer : kExitAsExpected;
  }

 private:
  static void PrintJson(const std::vector<CellMovement>& movements) {
    Json cells = Json::array();
    for (const CellMovement& movement : movements) {
      Json cell = {{"cell", movement.name},
                   {"id", movement.cell->id},
                   {"drift", std::string(Name(movement.movement))},
                   {"what", movement.what}};
      if (std::isfinite(movement.multiple)) cell["multiple"] = movement.multiple;
      cells.push_back(std::move(cell));
    }
    Print(ToText(Json{{"schema", 1}, {"cells", cells}}));
  }

  static void PrintText(const std::vector<CellMovement>& movements, const Baseline& baseline) {
    std::map<std::string, int> counts;
    for (const CellMovement& movement : movements) {
      ++counts[std::string(Name(movement.movement))];
      std::string line = absl::StrFormat("%-15s %s", std::string(Name(movement.movement)),
                                         CellLabel(*movement.cell));
      if (movement.multiple > 0)
        absl::StrAppend(&line, absl::StrFormat(", %.2g floors", movement.multiple));
      if (!movement.what.empty()) absl::StrAppend(&line, ": ", movement.what);
      Printf("%s\n", line);
    }
    Printf("\nAgainst %s:", baseline.folder().c_str());
    for (const auto& [name, count] : counts) Printf(" %d %s", count, name.c_str());
    Printf("\n");
  }

  std::string run_;
  std::string baseline_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakeDriftCommand() { return std::make_unique<DriftCommand>(); }

}  // namespace bkm
