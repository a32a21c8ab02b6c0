// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.

#include <set>

#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"
#include "harness/bundle/unpack.h"
#include "harness/cli/all_commands.h"
#include "harness/cli/console.h"
#include "harness/cli/console_observer.h"
#include "harness/cli/outcome.h"
#include "harness/report/command_text.h"
#include "harness/report/summary.h"

namespace bkm {
namespace {

class UnpackCommand : public CliCommand {
 public:
  const char* name() const override { return "unpack"; }
  const char* summary() const override {
    return "Check the results of bkm work, put them into a run directory and judge them";
  }
  const char* examples() const override {
    return "Everything is checked before anything is written: one bad part and the run directory "
           "stays as it was.\n"
           "Results are taken for bundles that this machine packed, or for the one that --bundle "
           "names.\n"
           "Exit 0: every cell has a verdict. Exit 1: a cell has no result, or is spurious. "
           "Exit 2: the results are damaged or of another bundle. Exit 3: interrupted.\n"
           "Example: bkm unpack results.bkm runs/quickstart";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("results", results_, "The file that bkm work wrote")->required();
    app.add_option("run", run_, "Run directory; created if it is missing")->required();
    app.add_option("--bundle", bundle_,
                   "The file that bkm pack wrote, if another machine packed the cells");
    app.add_flag("--json", json_, "Print run.json instead of the summary");
  }

  absl::StatusOr<int> Run() override {
    ASSIGN_OR_RETURN(const Installation installation, Installation::Find());
    ConsoleObserver observer(/*quiet=*/json_);
    InterruptSignals signals;
    absl::StatusOr<UnpackSummary> unpacked = Unpack(
        installation, {.results = results_, .run = run_, .bundle = bundle_}, observer, signals);
    if (absl::IsCancelled(unpacked.status())) {
      PrintErrorf("bkm: %s\n", std::string(unpacked.status().message()));
      return kExitInterrupted;
    }
    RETURN_IF_ERROR(unpacked.status());
    if (unpacked->other_code) {
      observer.OnWarning(
          "another build of bkm ran these cells: a bkm run here would measure them again");
    }
    if (json_) {
      Print(ToText(ToJson(unpacked->run)));
    } else {
      PrintText(*unpacked);
    }
    if (!unpacked->run.finished) {
      PrintErrorf("bkm: interrupted; run the same command to finish\n");
      return kExitInterrupted;
    }
    const int code = ExitCodeOf(unpacked->run);
    return code == kExitAsExpected && !unpacked->missing.empty() ? kExitVerdictsDiffer : code;
  }

 private:
  void PrintText(const UnpackSummary& unpacked) const {
    Print(SummaryText(unpacked.run));
    Printf("\n%d results unpacked, %d were there\n", unpacked.unpacked, unpacked.known);
    for (const MeasuredOn& measured : unpacked.measured_on)
      Printf("Measured on %s\n", MeasuredOnText(measured));
    std::set<std::string> skipped;
    for (const SkippedCell& cell : unpacked.skipped.cells) skipped.insert(cell.cell);
    for (const std::string& cell : unpacked.missing)
      if (!skipped.contains(cell)) Printf("No result: %s\n", cell);
    for (const std::string& text : SkippedTexts(unpacked.skipped))
      Printf("That machine %s\n", text.substr(0, 2000));
    Printf("Details of a cell: bkm explain %s CELL\n", ShellWord(run_));
  }

  std::string results_;
  std::string run_;
  std::string bundle_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakeUnpackCommand() { return std::make_unique<UnpackCommand>(); }

}  // namespace bkm
