// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.

#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"
#include "harness/cli/console.h"
#include "harness/cli/run_commands.h"
#include "harness/model/sandbox_level.h"
#include "harness/report/command_text.h"
#include "harness/report/find_cell.h"
#include "harness/report/story.h"
#include "harness/runner/judging.h"
#include "harness/runner/measured_on.h"

namespace bkm {
namespace {

class ExplainCommand : public CliCommand {
 public:
  const char* name() const override { return "explain"; }
  const char* summary() const override {
    return "Explain the verdict of one cell, with the evidence";
  }
  const char* examples() const override {
    return "Example: bkm explain runs/quickstart engine=0.9.1,library=0.3.0,attention=flex";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("run", run_, "Run directory")->required();
    app.add_option("cell", cell_,
                   "Cell: its id, its folder name, or a filter that matches only this cell")
        ->required();
    app.add_flag("--json", json_, "Print observation and verdict as JSON");
  }

  absl::StatusOr<int> Run() override {
    const RunDirectory directory(run_);
    ASSIGN_OR_RETURN(const RunRecord run, directory.ReadRun());
    ASSIGN_OR_RETURN(const CellRecord* cell, FindCell(run, cell_));
    // The verdict of a cell whose observation is damaged says so.
    const absl::StatusOr<std::optional<CellFacts>> facts = directory.ReadObservation(*cell);
    ASSIGN_OR_RETURN(const std::optional<Verdict> verdict,
                     RunJudge(directory).JudgeCell(run, *cell));
    ASSIGN_OR_RETURN(const std::optional<MeasuredOn> elsewhere,
                     ReadMeasuredOn(run, directory.cell(*cell)));
    const Json seen = facts.ok() && *facts ? (*facts)->json() : Json();
    const Verdict said = verdict.value_or(Verdict());
    const std::string level = LevelOnDevice(elsewhere ? elsewhere->machine.sandbox : run.sandbox,
                                            cell->cell.probe.device);
    if (json_) {
      Json json = {{"id", cell->id},
                   {"sandbox", LevelText(level)},
                   {"observation", seen},
                   {"verdict", ToJson(said)}};
      if (elsewhere) json["measured_on"] = WriteFields(*elsewhere);
      Print(ToText(json));
      return kExitAsExpected;
    }
    Printf("%s\n", StoryText(*cell, seen, said));
    if (elsewhere) {
      // bkm replay refuses it: what it needs is on the other machine.
      Printf("Measured on another machine: %s\nFiles: %s\n", MeasuredOnText(*elsewhere),
             directory.cell(*cell).string());
    } else {
      Printf("Sandbox: %s\nFiles: %s\nAgain: bkm replay %s %s\n", LevelText(level),
             directory.cell(*cell).string(), ShellWord(run_),
             ShellWord(directory.cell(*cell).filename()));
    }
    return kExitAsExpected;
  }

 private:
  std::string run_;
  std::string cell_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakeExplainCommand() { return std::make_unique<ExplainCommand>(); }

}  // namespace bkm
