// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <algorithm>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/cli/bisect_report.h"
#include "harness/cli/command.h"
#include "harness/cli/one_cell.h"
#include "harness/cli/selection.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

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
           "Exit 0: a culprit is named; 1: none is.\n"
           "Examples:\n"
           "  bkm bisect --engine verl-torchtitan@git:verl@v0.8.0 --library git:torchtitan@main "
           "--attention flex --axis library --good baba6d82e\n"
           "  bkm bisect --engine torchtitan --library git:torchtitan@main --attention sdpa --axis "
           "library --until verdict=wrong";
  }

  void AddOptions(CLI::App& app) override {
    selection_.AddOptions(app);
    app.add_option("--axis", axis_, "Whose history: engine, library, or both at once")
        ->check(CLI::IsMember({"engine", "library", "both"}))
        ->required();
    app.add_option("--good", good_, "A revision that is good (--axis both: ENGINE,LIBRARY)");
    app.add_option("--bad", bad_, "A revision that is bad");
    app.add_option("--since", since_, "Step back no further than this day, YYYY-MM-DD");
    app.add_option("--until", until_,
                   "What is bad: key=pattern,... of verdict, stage, reason, message, blame "
                   "(stage=golden; default: anything but ok)");
    app.add_flag("--flaky", flaky_, "The cell is flaky: measure again and again, and say how sure");
    app.add_option("--flake-rate", flake_rate_,
                   "How often it is bad by chance (default: measured at the good end)")
        ->check(CLI::Range(0.001, 0.9));
    app.add_option("--confidence", confidence_, "How sure a flaky search must be")
        ->check(CLI::Range(0.5, 0.9999))
        ->capture_default_str();
    app.add_option("--out", out_, "Run directory (default: runs/bisect-CELL)");
    app.add_option("--jobs,-j", jobs_, "Cells in flight (default: one per core)")
        ->check(CLI::Range(1, 1024));
    app.add_flag("--json", json_, "Print bisect.json to stdout");
    app.add_flag("--quiet,-q", quiet_, "No progress, no summary");
  }

  absl::StatusOr<int> Run() override {
    const auto start = std::chrono::steady_clock::now();
    ASSIGN_OR_RETURN(const Criterion criterion, Criterion::Parse(until_));
    ConsoleObserver console(quiet_ || json_);
    InterruptSignals signals;
    ASSIGN_OR_RETURN(const OneCell cell, OneCell::Load(selection_, console));
    const std::string own = OwnRevision(cell.planned);
    const std::string bad = bad_.empty() && !good_.empty() ? own : bad_;
    const std::string good = good_.empty() && !bad_.empty() ? own : good_;
    const bool given = !bad.empty();
    ASSIGN_OR_RETURN(const HistoryAxis axis,
                     HistoryAxis::Create(cell.planned, Kind(),
                                         {.one = given ? bad : "", .other = good, .since = since_},
                                         cell.preparation->git(), cell.preparation->catalog()));
    const RunDirectory directory(fs::absolute(
        out_.empty() ? absl::StrCat("runs/bisect-",
                                    CellFolderName(cell.planned.cell,
                                                   absl::StrCat(cell.planned.id, axis_, until_)))
                     : out_));
    RETURN_IF_ERROR(CreateDirectories(directory.root()));
    SearchLog log(directory.root() / "search.log", console);
    Announce(axis, criterion, given, log);
    Investigation investigation(
        axis.graph(),
        {.late = axis.late(),
         .early = axis.early(),
         .criterion = criterion,
         .flaky = flaky_,
         .after = axis.one_is_late() ? Side::kBad : Side::kGood,
         .flake_rate = flake_rate_ > 0 ? std::optional<double>(flake_rate_) : std::nullopt,
         .confidence = confidence_});
    SearchSession session({.installation = cell.installation,
                           .matrix = cell.matrix,
                           .directory = directory,
                           .measurement = {.slots = jobs_, .controls = false},
                           .held = axis.late()},
                          axis, *cell.preparation, signals, log);
    ConsoleObserver silent(/*quiet=*/true);
    ASSIGN_OR_RETURN(
        const bool finished,
        session.Run(investigation, silent, [&](const Trial& probe, const Outcome& outcome) {
          return CommentOn(investigation, probe, outcome);
        }));
    const BisectReport report{
        .axis = axis,
        .investigation = investigation,
        .session = session,
        .criterion = criterion,
        .cell = axis.CellAt(axis.late()).id,
        .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
    if (!finished) {
      std::fprintf(stderr, "bkm: interrupted; the same command goes on from here\n");
      return kExitInterrupted;
    }
    const OrderedJson json = ToJson(report);
    RETURN_IF_ERROR(WriteFile(directory.root() / "bisect.json", ToText(json)));
    log.Line(absl::StrCat("done: ", Name(investigation.result().bisection.status)));
    Print(report, json, directory);
    return investigation.result().bisection.status == SearchStatus::kFound ? kExitAsExpected
                                                                           : kExitVerdictsDiffer;
  }

 private:
  AxisKind Kind() const {
    return axis_ == "engine" ? AxisKind::kEngine
           : axis_ == "both" ? AxisKind::kBoth
                             : AxisKind::kLibrary;
  }
  // As an end of the axis is named.
  std::string OwnRevision(const PlannedCell& planned) const {
    const auto revision = [](const std::optional<SubjectSpec>& subject) {
      return subject ? subject->revision : "";
    };
    const std::string engine = revision(planned.cell.engine_subject);
    const std::string library = revision(planned.cell.library_subject);
    return axis_ == "engine" ? engine
           : axis_ == "both" ? absl::StrCat(engine, ",", library)
                             : library;
  }

  static void Announce(const HistoryAxis& axis, const Criterion& criterion, bool given,
                       SearchLog& log) {
    const CommitGraph& graph = axis.graph();
    log.Line(absl::StrCat("axis ", Name(axis.kind()), ": ", graph.size(), " commits with ",
                          graph.contents(), " different contents; bad is ", criterion.Text()));
    if (!axis.note().empty()) log.Line(axis.note());
    const char* late = axis.one_is_late() ? "bad" : "good";
    log.Line(absl::StrCat("newer end", given ? absl::StrCat(" (said to be ", late, ")") : "", ": ",
                          axis.Describe(axis.late())));
    if (!axis.early()) return log.Line("older end: found by stepping back 1, 2, 4, ... days");
    const char* early = axis.one_is_late() ? "good" : "bad";
    log.Line(absl::StrCat("older end (said to be ", early, "): ", axis.Describe(*axis.early())));
  }

  static std::string CommentOn(const Investigation& investigation, const Trial& probe,
                               const Outcome& outcome) {
    static_cast<void>(probe);
    std::string comment = absl::StrCat(" -> ", Name(investigation.Classify(outcome.verdict)));
    const int left = investigation.candidates();
    if (investigation.done()) return comment;
    if (investigation.doing() != absl::string_view("bisecting"))
      return absl::StrCat(comment, "; ", investigation.doing());
    if (left == 1) return absl::StrCat(comment, "; one candidate, to be confirmed");
    return left == 0 ? comment : absl::StrCat(comment, "; ", left, " candidates");
  }

  void Print(const BisectReport& report, const OrderedJson& json,
             const RunDirectory& directory) const {
    if (json_) {
      std::fputs(ToText(json).c_str(), stdout);
    } else if (!quiet_) {
      std::fputs(ToSummary(report).c_str(), stdout);
      std::printf("Log: %s\nEvidence: bkm explain %s CELL\n",
                  (directory.root() / "search.log").c_str(), directory.root().c_str());
    }
  }

  Selection selection_;
  std::string axis_;
  std::string good_;
  std::string bad_;
  std::string since_;
  std::string until_;
  bool flaky_ = false;
  double flake_rate_ = 0;
  double confidence_ = 0.99;
  std::string out_;
  int jobs_ = 0;
  bool json_ = false;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakeBisectCommand() { return std::make_unique<BisectCommand>(); }

}  // namespace bkm
