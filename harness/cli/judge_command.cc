// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.

#include "harness/base/status_macros.h"
#include "harness/cli/console.h"
#include "harness/cli/outcome.h"
#include "harness/cli/run_commands.h"
#include "harness/report/summary.h"
#include "harness/runner/judging.h"

namespace bkm {
namespace {

class JudgeCommand : public CliCommand {
 public:
  const char* name() const override { return "judge"; }
  const char* summary() const override {
    return "Judge the observations of a run again; runs nothing";
  }
  const char* examples() const override { return "Example: bkm judge runs/quickstart"; }

  void AddOptions(CLI::App& app) override {
    app.add_option("run", run_, "Run directory")->required();
    app.add_flag("--json", json_, "Print run.json instead of the summary");
  }

  absl::StatusOr<int> Run() override {
    const RunDirectory directory(run_);
    ASSIGN_OR_RETURN(RunRecord run, directory.ReadRun());
    ASSIGN_OR_RETURN(const FileLock lock, directory.Lock());
    RETURN_IF_ERROR(RunJudge(directory).JudgeRun(run));
    Print(json_ ? ToText(ToJson(run)) : SummaryText(run));
    return ExitCodeOf(run);
  }

 private:
  std::string run_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakeJudgeCommand() { return std::make_unique<JudgeCommand>(); }

}  // namespace bkm
