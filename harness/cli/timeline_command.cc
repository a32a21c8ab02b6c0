// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/cli/command.h"
#include "harness/cli/one_cell.h"
#include "harness/cli/selection.h"
#include "harness/cli/timeline_report.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

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
    selection_.AddOptions(app);
    app.add_option("--axis", axis_, "Whose history: engine, library, or both at once")
        ->check(CLI::IsMember({"engine", "library", "both"}))
        ->required();
    app.add_option("--since", since_, "The first day, YYYY-MM-DD")->required();
    app.add_option("--every", every_,
                   "Measure at first each so manieth commit: a shorter stretch may not be seen")
        ->check(CLI::Range(1, 100000))
        ->capture_default_str();
    app.add_flag("--confirm", confirm_, "Measure both sides of every boundary once more");
    app.add_option("--out", out_, "Run directory (default: runs/timeline-CELL)");
    app.add_option("--jobs,-j", jobs_, "Cells in flight (default: one per core)")
        ->check(CLI::Range(1, 1024));
    app.add_flag("--json", json_, "Print timeline.json to stdout");
    app.add_flag("--quiet,-q", quiet_, "No progress, no summary");
  }

  absl::StatusOr<int> Run() override {
    const auto start = std::chrono::steady_clock::now();
    ConsoleObserver console(quiet_ || json_);
    InterruptSignals signals;
    ASSIGN_OR_RETURN(const OneCell cell, OneCell::Load(selection_, console));
    const AxisKind kind = axis_ == "engine" ? AxisKind::kEngine
                          : axis_ == "both" ? AxisKind::kBoth
                                            : AxisKind::kLibrary;
    ASSIGN_OR_RETURN(const HistoryAxis axis,
                     HistoryAxis::Create(cell.planned, kind, {.since = since_},
                                         cell.preparation->git(), cell.preparation->catalog()));
    const RunDirectory directory(fs::absolute(
        out_.empty()
            ? absl::StrCat("runs/timeline-",
                           CellFolderName(cell.planned.cell, absl::StrCat(cell.planned.id, axis_)))
            : out_));
    RETURN_IF_ERROR(CreateDirectories(directory.root()));
    SearchLog log(directory.root() / "search.log", console);
    log.Line(absl::StrCat("axis ", axis_, ": ", axis.graph().size(), " commits with ",
                          axis.graph().contents(), " different contents, up to ",
                          axis.Describe(axis.late())));
    Timeline timeline(
        axis.graph(),
        {.late = axis.late(), .every = every_, .runtime_of = axis.late(), .confirm = confirm_});
    SearchSession session({.installation = cell.installation,
                           .matrix = cell.matrix,
                           .directory = directory,
                           .measurement = {.slots = jobs_, .controls = false},
                           .held = axis.late()},
                          axis, *cell.preparation, signals, log);
    ConsoleObserver silent(/*quiet=*/true);
    ASSIGN_OR_RETURN(
        const bool finished, session.Run(timeline, silent, [&](const Trial&, const Outcome&) {
          return absl::StrCat("; ", timeline.result().boundaries.size(), " boundaries so far");
        }));
    if (!finished) {
      std::fprintf(stderr, "bkm: interrupted; the same command goes on from here\n");
      return kExitInterrupted;
    }
    const TimelineReport report{
        .axis = axis,
        .timeline = timeline,
        .session = session,
        .cell = axis.CellAt(axis.late()).id,
        .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
    const OrderedJson json = ToJson(report);
    RETURN_IF_ERROR(WriteFile(directory.root() / "timeline.json", ToText(json)));
    if (json_) {
      std::fputs(ToText(json).c_str(), stdout);
    } else if (!quiet_) {
      std::fputs(ToSummary(report).c_str(), stdout);
      std::printf("Log: %s\nEvidence: bkm explain %s CELL\n",
                  (directory.root() / "search.log").c_str(), directory.root().c_str());
    }
    return kExitAsExpected;
  }

 private:
  Selection selection_;
  std::string axis_;
  std::string since_;
  int every_ = 16;
  bool confirm_ = false;
  std::string out_;
  int jobs_ = 0;
  bool json_ = false;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakeTimelineCommand() { return std::make_unique<TimelineCommand>(); }

}  // namespace bkm
