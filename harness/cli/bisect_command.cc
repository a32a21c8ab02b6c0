// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>

#include "harness/base/status_macros.h"
#include "harness/cli/command.h"
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
    return "Find the commit that broke or mended a cell, and confirm it";
  }
  const char* examples() const override {
    return "The cell is named as for bkm run, and must be one. Its own revision is one end unless "
           "--good and --bad name both; an end that is not named is found by stepping back 1, 2, "
           "4, "
           "... days.\n"
           "Bad is any verdict against the pair; with --until, only what matches, and a commit "
           "that "
           "is differently bad is neither good nor bad.\n"
           "What the run directory holds is not measured again: after Ctrl-C or a crash the same "
           "command goes on. It writes search.log and bisect.json there.\n"
           "--peel: of the pair as named, all that is broken, one behind the other: each culprit "
           "is "
           "found by the sources where they say it, else by runs, is taken out of the library "
           "(reverted, or older files, or a stand-in), and the pair is run on to the next; where "
           "later commits build on one, at the last commit that does not. It writes peel.json, and "
           "a run directory for each step.\n"
           "Exit 0: a culprit is named (--peel: the pair is ok without those named); 1: none is.\n"
           "Examples:\n"
           "  bkm bisect --engine verl-torchtitan@git:verl@v0.8.0 --library git:torchtitan@main "
           "--attention flex --axis library --good baba6d82e\n"
           "  bkm bisect --engine torchtitan --library git:torchtitan@main --attention sdpa --axis "
           "library --until verdict=wrong\n"
           "  bkm bisect --engine verl-torchtitan@git:verl@v0.7.1 --library git:torchtitan@main "
           "--attention flex --axis library --good c1465542e --peel\n"
           "  bkm bisect --engine verl-torchtitan@git:verl@main --library git:torchtitan@main "
           "--attention flex --axis library --ladder";
  }

  void AddOptions(CLI::App& app) override {
    options_.AddOptions(app, "bisect");
    app.add_option("--good", bisect_.good, "A revision that is good (--axis both: ENGINE,LIBRARY)");
    app.add_option("--bad", bisect_.bad, "A revision that is bad");
    app.add_option("--since", options_.since, "Step back no further than this day, YYYY-MM-DD");
    app.add_option("--until", until_,
                   "What is bad: key=pattern,... of verdict, stage, reason, message, blame "
                   "(stage=golden; default: anything but ok)");
    app.add_flag("--ladder", bisect_.ladder,
                 "Find the older end among the releases (tags), the newest first, instead of by "
                 "days; then the commit between the two releases that differ");
    app.add_flag("--flaky", bisect_.flaky,
                 "The cell is flaky: measure again and again, and say how sure");
    app.add_option("--flake-rate", flake_rate_,
                   "How often it is bad by chance (default: measured at the good end)")
        ->check(CLI::Range(0.001, 0.9));
    app.add_option("--confidence", bisect_.confidence, "How sure a flaky search must be")
        ->check(CLI::Range(0.5, 0.9999))
        ->capture_default_str();
    app.add_flag("--peel", peel_, "All that is broken, not only the first: stacked culprits")
        ->excludes("--until")
        ->excludes("--flaky");
    app.add_option("--most", peel_options_.most_culprits, "Peel no more culprits than these")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    app.add_option("--tries", peel_options_.most_trials,
                   "Peel: commits to try for one culprit, then go on without")
        ->check(CLI::Range(4, 100000))
        ->capture_default_str();
  }

  absl::StatusOr<int> Run() override {
    const auto start = std::chrono::steady_clock::now();
    if (peel_ && options_.kind() != AxisKind::kLibrary)
      return absl::InvalidArgumentError("--peel takes commits out of the library: --axis library");
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
    ApiSession api(options_.selection.GitMirrors(), options_.selection.MatrixFolder());
    HistorySearchContext context{.start = start,
                                 .cell = cell,
                                 .axis = axis,
                                 .directory = directory,
                                 .setup = options_.SetupOf(cell, directory, axis),
                                 .api = api,
                                 .signals = signals,
                                 .log = log};
    ASSIGN_OR_RETURN(const std::optional<BisectAnswer> answer,
                     peel_ ? PeelCell(std::move(context), peel_options_)
                           : BisectCell(std::move(context), bisect_, criterion));
    if (!answer) {
      std::fprintf(stderr, "bkm: interrupted; the same command goes on from here\n");
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
