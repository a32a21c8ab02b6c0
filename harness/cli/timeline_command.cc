// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"
#include "harness/cli/command.h"
#include "harness/cli/console_observer.h"
#include "harness/cli/search_options.h"
#include "harness/history/timeline_report.h"

namespace bkm {
namespace {

class TimelineCommand : public CliCommand {
 public:
  const char* name() const override { return "timeline"; }
  const char* summary() const override { return "Find every boundary of a history for one cell"; }
  const char* examples() const override {
    return "The cell is named as for bkm run, and must be one; its own revision is the newer end. "
           "Only first parents are walked: bkm bisect looks inside a merge.\n"
           "What the run directory holds is not measured again. It writes search.log and "
           "timeline.json there.\n"
           "Exit 0: the whole history was seen.\n"
           "Example:\n"
           "  bkm timeline --engine torchtitan --library git:torchtitan@main --attention sdpa "
           "--axis "
           "library --since 2026-03-01";
  }

  void AddOptions(CLI::App& app) override {
    options_.AddOptions(app, "timeline");
    app.add_option("--since", options_.since, "The first day, YYYY-MM-DD")->required();
    app.add_option("--every", every_,
                   "Measure at first each so manieth commit: a shorter stretch may not be seen")
        ->check(CLI::Range(1, 100000))
        ->capture_default_str();
    app.add_flag("--confirm", confirm_, "Measure both sides of every boundary once more");
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
    SearchSession session(options_.SetupOf(directory, axis),
                          {cell.installation, cell.matrix, axis, *cell.preparation, signals, log});
    RunObserver silent;
    ASSIGN_OR_RETURN(
        const bool finished, session.Run(timeline, silent, [&](const Trial&, const Outcome&) {
          return absl::StrCat("; ", timeline.result().boundaries.size(), " boundaries so far");
        }));
    if (!finished) {
      std::fprintf(stderr, "bkm: interrupted; the same command goes on from here\n");
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
