// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/status_macros.h"
#include "harness/bundle/work.h"
#include "harness/cli/all_commands.h"
#include "harness/cli/console.h"
#include "harness/cli/console_observer.h"
#include "harness/cli/sandbox_option.h"
#include "harness/report/command_text.h"

namespace bkm {
namespace {

class WorkCommand : public CliCommand {
 public:
  const char* name() const override { return "work"; }
  const char* summary() const override {
    return "Run the cells of a file that bkm pack wrote, and write their results into one file";
  }
  const char* examples() const override {
    return "Needs neither git nor LibTorch. Judges nothing: bkm unpack does, on the machine that "
           "packed the cells.\n"
           "The same command resumes: a cell that has a result does not run again.\n"
           "With --python, cells run with the packages of that interpreter, which are recorded. A "
           "cell whose lock names other packages then has another id, which names that lock. "
           "Without --python, uv creates the environments that the packed locks describe.\n"
           "Exit 0: every cell has a result. Exit 1: this machine cannot run some cells; each has "
           "a sentence that says why, also in the results. Exit 2: the cells cannot be read, or "
           "the results cannot be written. Exit 3: interrupted.\n"
           "Examples:\n"
           "  bkm work cells.bkm --out results.bkm\n"
           "  bkm work cells.bkm --out results.bkm --python .venv/bin/python --jobs 4";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("cells", bundle_, "The file that bkm pack wrote")->required();
    app.add_option("--out", out_, "The file of results")->required();
    app.add_option("--python", python_,
                   "Interpreter whose packages the cells use (default: environments of the packed "
                   "locks)");
    app.add_option("--jobs,-j", jobs_, "Cells to run at once (default: one per core)")
        ->check(CLI::Range(1, 1024));
    sandbox_.AddTo(app);
    app.add_flag("--json", json_, "Print JSON");
    app.add_flag("--quiet,-q", quiet_, "Print neither progress nor summary");
  }

  absl::StatusOr<int> Run() override {
    ASSIGN_OR_RETURN(const Installation installation, Installation::Find());
    RETURN_IF_ERROR(sandbox_.Check(installation));
    ConsoleObserver observer(quiet_ || json_);
    InterruptSignals signals;
    ASSIGN_OR_RETURN(const WorkSummary summary, Work(installation,
                                                     {.bundle = bundle_,
                                                      .out = out_,
                                                      .python = python_,
                                                      .jobs = jobs_,
                                                      .sandbox = sandbox_.level()},
                                                     observer, signals));
    if (!summary.other_code.empty()) {
      observer.OnWarning(
          "another build of bkm packed these cells: here they ran with this build's code, and a "
          "bkm run would measure them again");
    }
    if (json_) {
      PrintJson(summary);
    } else if (!quiet_) {
      PrintText(summary);
    }
    if (!summary.finished) {
      PrintErrorf("bkm: interrupted; run the same command to finish\n");
      return kExitInterrupted;
    }
    return summary.skipped.cells.empty() ? kExitAsExpected : kExitVerdictsDiffer;
  }

 private:
  void PrintJson(const WorkSummary& summary) const {
    OrderedJson json = {{"schema", 1},
                        {"file", out_},
                        {"finished", summary.finished},
                        {"cells", summary.cells},
                        {"ran", summary.ran - summary.controls},
                        {"controls", summary.controls},
                        {"known", summary.known},
                        {"machine", WriteFields(summary.machine)}};
    json["skipped"] = WriteFields(summary.skipped)["cells"];
    Print(ToText(json));
  }

  void PrintText(const WorkSummary& summary) const {
    const WorkMachine& machine = summary.machine;
    Printf("%d of %d cells ran, %d had a result, %d cannot run here",
           summary.ran - summary.controls, summary.cells, summary.known,
           summary.skipped.cells.size());
    if (summary.controls > 0) Printf("; %d controls ran", summary.controls);
    Printf("\nMachine: %s, %d cores, %s, sandbox %s\n", machine.cpu, machine.cores, machine.system,
           machine.sandbox);
    if (!machine.devices.empty()) Printf("GPUs: %s\n", DevicesText(machine.devices));
    Printf("Judge them where they were packed: bkm unpack %s RUN\n", ShellWord(out_));
  }

  SandboxOption sandbox_;
  std::string bundle_;
  std::string out_;
  std::string python_;
  int jobs_ = 0;
  bool json_ = false;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakeWorkCommand() { return std::make_unique<WorkCommand>(); }

}  // namespace bkm
