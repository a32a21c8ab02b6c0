// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <optional>

#include "harness/base/status_macros.h"
#include "harness/check/check_session.h"
#include "harness/cli/all_commands.h"
#include "harness/cli/console.h"
#include "harness/cli/console_observer.h"

namespace bkm {
namespace {

class CheckCommand : public CliCommand {
 public:
  const char* name() const override { return "check"; }
  const char* summary() const override {
    return "Check whether the versions in your own environment work together";
  }
  const char* examples() const override {
    return "Reads which engine, library and torch are installed, checks their sources, and runs "
           "one training step per attention in a sandbox. Nothing is written into the "
           "environment. User site-packages and PYTHONPATH are ignored. Without --python, the "
           "command checks the active virtual or conda environment, else python3 from PATH.\n"
           "Each engine is asked for what it does by itself: its own precision and sharding. "
           "Another precision is a remark, and does not change the answer.\n"
           "Exit 0: no installed engine is broken. Exit 1: an engine is broken with every "
           "attention. Exit 2: nothing could be checked, or nothing was decided.\n"
           "Examples:\n"
           "  bkm check\n"
           "  bkm check --python ~/venvs/train/bin/python --table published/table.json\n"
           "  bkm check --sources-only --json";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("--python", options_.python,
                   "Python interpreter of the environment: a path, or a name in PATH");
    app.add_option(
        "--table", options_.table,
        "Published table.json, for known results and the nearest versions that work (default: "
        "published/table.json of this checkout, else golden/table/table.json)");
    app.add_option("--model", options_.model, "Model to train")->capture_default_str();
    app.add_option("--layout", options_.layout,
                   "How the ranks of each cell share the work, for example dp_shard=2 (1: one "
                   "rank)")
        ->capture_default_str();
    app.add_option("--device", options_.device, "What to train on: cpu, or cuda")
        ->check(CLI::IsMember({"cpu", "cuda"}))
        ->capture_default_str();
    app.add_option("--precision", options_.precision,
                   "bf16 or fp32, instead of what each engine does by itself")
        ->check(CLI::IsMember({"bf16", "fp32"}));
    app.add_flag("--sources-only", options_.sources_only, "Check the sources only; run no cell");
    app.add_option("--out", options_.out, "Run directory (default: in the cache)");
    app.add_option("--jobs,-j", options_.jobs, "Cells to run at once (default: one per core)")
        ->check(CLI::Range(1, 1024));
    app.add_flag("--json", json_, "Print as JSON");
  }

  absl::StatusOr<int> Run() override {
    ConsoleObserver console(json_);
    ASSIGN_OR_RETURN(const std::optional<CheckReport> report, CheckEnvironment(options_, console));
    if (!report) {
      PrintErrorf("bkm: interrupted\n");
      return kExitInterrupted;
    }
    Print(json_ ? ToText(ToJson(*report)) : ToSummary(*report));
    for (const CheckedPairing& pairing : report->pairings) {
      if (AnswerOf(pairing) == CheckAnswer::kBroken) return kExitVerdictsDiffer;
    }
    if (DecidedSomething(*report)) return kExitAsExpected;
    PrintErrorf("bkm: nothing was decided: no cell of this environment gave a result\n");
    return kExitHarnessError;
  }

 private:
  CheckOptions options_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakeCheckCommand() { return std::make_unique<CheckCommand>(); }

}  // namespace bkm
