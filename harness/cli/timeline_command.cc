// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.

#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"
#include "harness/cli/all_commands.h"
#include "harness/cli/console.h"
#include "harness/cli/console_observer.h"
#include "harness/cli/search_options.h"
#include "harness/history/timeline_report.h"

namespace bkm {
namespace {

class TimelineCommand : public CliCommand {
 public:
  const char* name() const override { return "timeline"; }
  const char* summary() const override { return "Find every boundary in a cell's history"; }
  const char* examples() const override {
    return "A boundary is a pair of neighbouring commits with different verdicts. Select "
           "exactly one cell, with the same options as for bkm run; its own revision is the "
           "newer end. Only first parents are followed; bkm bisect also searches inside a merge.\n"
           "The run directory holds search.log and timeline.json. The same command resumes an "
           "interrupted search and measures nothing twice.\n"
           "Exit 0: the whole history was searched. Exit 3: interrupted.\n"
           "Example:\n"
           "  bkm timeline --engine torchtitan --library git:torchtitan@main --attention sdpa "
           "--axis library --since 2026-03-01";
  }

  void AddOptions(CLI::App& app) override {
    options_.AddOptions(app, "timeline");
    app.add_option("--since", options_.since, "Oldest day, YYYY-MM-DD")->required();
    app.add_option(
           "--every", every_,
           "Measure every N-th commit first. A change that lasts fewer commits may be missed")
        ->check(CLI::Range(1, 100000))
        ->capture_default_str();
    app.add_flag("--confirm", confirm_, "Measure both sides of every boundary a second time");
  }

  absl::StatusOr<int> Run() override {
    const auto start = std::chrono::steady_clock::now();
    ConsoleObserver console(options_.quiet || options_.json);
    InterruptSignals signals;
    ASSIGN_OR_RETURN(const OneCell cell, options_.LoadCell(console));
    ASSIGN_OR_RETURN(const HistoryAxis axis,
                     HistoryAxis::Create(cell.planned, options_.kind(), {.since = options_.since},
                                         cell.preparation->git(), cell.preparation->catalog()));
    ASSIGN_OR_RETURN(const RunDirectory directory,
                     options_.MakeDirectory("timeline", cell.planned, ""));
    SearchLog log(directory.root() / "search.log", console);
    log.Line(absl::StrCat("axis ", options_.axis, ": ", axis.graph().size(), " commits with ",
                          axis.graph().contents(), " different contents, up to ",
                          axis.Describe(axis.late())));
    Timeline timeline(
        axis.graph(),
        {.late = axis.late(), .every = every_, .runtime_of = axis.late(), .confirm = confirm_});
    ASSIGN_OR_RETURN(const std::unique_ptr<CellExecutor> workers,
                     options_.Workers(cell, directory, console, signals));
    SearchSession session(
        options_.SetupOf(directory, axis),
        {cell.installation, cell.matrix, axis, *cell.preparation, *workers, signals, log});
    ASSIGN_OR_RETURN(const bool finished, session.Run(timeline, [&](const Trial&, const Outcome&) {
      return absl::StrCat("; ", timeline.result().boundaries.size(), " boundaries so far");
    }));
    if (!finished) {
      PrintErrorf("bkm: interrupted; run the same command to continue\n");
      return kExitInterrupted;
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const TimelineReport report =
        MakeTimelineReport(axis, timeline, session.effort(seconds.count()));
    RETURN_IF_ERROR(options_.Report("timeline", directory, ToJson(report), ToSummary(report)));
    return kExitAsExpected;
  }

 private:
  SearchOptions options_;
  int every_ = 16;
  bool confirm_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakeTimelineCommand() { return std::make_unique<TimelineCommand>(); }

}  // namespace bkm
