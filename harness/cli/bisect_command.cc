// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <chrono>
#include <optional>
#include <string>

#include "harness/base/status_macros.h"
#include "harness/cli/all_commands.h"
#include "harness/cli/console.h"
#include "harness/cli/console_observer.h"
#include "harness/cli/search_options.h"
#include "harness/history/bisect_session.h"
#include "harness/session/interrupt.h"

namespace bkm {
namespace {

class BisectCommand : public CliCommand {
 public:
  const char* name() const override { return "bisect"; }
  const char* summary() const override {
    return "Find the commit that broke or fixed a cell, and confirm it";
  }
  const char* examples() const override {
    return "Select exactly one cell, with the same options as for bkm run. Without --good and "
           "--bad, the cell's own revision is the newer end, and bkm finds the older end by "
           "stepping back 1, 2, 4, ... days. With only one of them, the cell's own revision is "
           "the other end.\n"
           "A commit is bad if the verdict is refused, broken or wrong. With --until, a commit "
           "is bad only if its verdict matches; a commit that fails in another way is then "
           "neither good nor bad.\n"
           "The run directory holds search.log and bisect.json. The same command resumes an "
           "interrupted search and measures nothing twice.\n"
           "--peel finds every culprit of the pair, not only the first. It finds each culprit "
           "from the sources if they show it, else by running cells. It removes the culprit "
           "from the library (by a revert, by older files or by a stub) and continues with the "
           "next failure. If later commits depend on a culprit, it continues at the last commit "
           "that does not. It writes peel.json, and one run directory per step.\n"
           "Exit 0: a culprit was found (--peel: the pair works without the culprits). Exit 1: "
           "none was found.\n"
           "Examples:\n"
           "  bkm bisect --engine verl-torchtitan@git:verl@v0.8.0 --library git:torchtitan@main "
           "--attention flex --axis library --good baba6d82e\n"
           "  bkm bisect --engine torchtitan --library git:torchtitan@main --attention sdpa "
           "--axis library --until verdict=wrong\n"
           "  bkm bisect --engine verl-torchtitan@git:verl@v0.7.1 --library git:torchtitan@main "
           "--attention flex --axis library --good c1465542e --peel\n"
           "  bkm bisect --engine verl-torchtitan@git:verl@main --library git:torchtitan@main "
           "--attention flex --axis library --ladder";
  }

  void AddOptions(CLI::App& app) override {
    options_.AddOptions(app, "bisect");
    app.add_option("--good", bisect_.good, "Good revision (--axis both: ENGINE,LIBRARY)");
    app.add_option("--bad", bisect_.bad, "Bad revision (--axis both: ENGINE,LIBRARY)");
    app.add_option("--since", options_.since, "Oldest day to step back to, YYYY-MM-DD");
    app.add_option(
        "--until", until_,
        "Verdicts that count as bad: key=glob,... with the keys verdict, stage, reason, message "
        "and blame, for example stage=golden (default: refused, broken or wrong)");
    app.add_flag("--ladder", bisect_.ladder,
                 "Step back by releases (tags) instead of days, then search between the two "
                 "releases that differ");
    app.add_flag("--flaky", bisect_.flaky,
                 "The cell is flaky: measure each commit repeatedly and report the confidence");
    app.add_option("--flake-rate", flake_rate_,
                   "Share of bad results without the culprit (default: measured at the good end)")
        ->check(CLI::Range(0.001, 0.9));
    app.add_option("--confidence", bisect_.confidence, "Confidence at which a flaky search stops")
        ->check(CLI::Range(0.5, 0.9999))
        ->capture_default_str();
    app.add_flag("--peel", peel_, "Find every culprit, not only the first")
        ->excludes("--until")
        ->excludes("--flaky");
    app.add_option("--most", peel_options_.most_culprits, "With --peel: maximum number of culprits")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    app.add_option("--tries", peel_options_.most_trials,
                   "With --peel: maximum number of commits to try for one culprit")
        ->check(CLI::Range(4, 100000))
        ->capture_default_str();
  }

  absl::StatusOr<int> Run() override {
    const auto start = std::chrono::steady_clock::now();
    if (peel_ && options_.kind() != AxisKind::kLibrary)
      return absl::InvalidArgumentError(
          "--peel removes commits from the library: it needs --axis library");
    ASSIGN_OR_RETURN(const Criterion criterion, Criterion::Parse(until_));
    ConsoleObserver console(options_.quiet || options_.json);
    InterruptSignals signals;
    ASSIGN_OR_RETURN(const OneCell cell, options_.LoadCell(console));
    bisect_.since = options_.since;
    if (flake_rate_ > 0) bisect_.flake_rate = flake_rate_;
    ASSIGN_OR_RETURN(const HistoryAxis axis,
                     HistoryAxis::Create(cell.planned, options_.kind(),
                                         EndsOf(bisect_, options_.kind(), cell.planned),
                                         cell.preparation->git(), cell.preparation->catalog()));
    const std::string result = peel_ ? "peel" : "bisect";
    ASSIGN_OR_RETURN(const RunDirectory directory,
                     options_.MakeDirectory(result, cell.planned, until_));
    SearchLog log(directory.root() / "search.log", console);
    ASSIGN_OR_RETURN(const std::unique_ptr<CellExecutor> workers,
                     options_.Workers(cell, directory, console, signals));
    ApiSession api(options_.selection.GitMirrors(), options_.selection.MatrixFolder());
    HistorySearchContext context{
        .start = start,
        .cell = cell,
        .setup = options_.SetupOf(directory, axis),
        .search = {cell.installation, cell.matrix, axis, *cell.preparation, *workers, signals, log},
        .api = api};
    ASSIGN_OR_RETURN(const std::optional<BisectAnswer> answer,
                     peel_ ? PeelCell(std::move(context), peel_options_)
                           : BisectCell(std::move(context), bisect_, criterion));
    if (!answer) {
      PrintErrorf("bkm: interrupted; run the same command to continue\n");
      return kExitInterrupted;
    }
    RETURN_IF_ERROR(options_.Report(result, directory, answer->json, answer->summary));
    return answer->found ? kExitAsExpected : kExitVerdictsDiffer;
  }

 private:
  SearchOptions options_;
  BisectOptions bisect_;
  PeelOptions peel_options_;
  std::string until_;
  double flake_rate_ = 0;
  bool peel_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakeBisectCommand() { return std::make_unique<BisectCommand>(); }

}  // namespace bkm
