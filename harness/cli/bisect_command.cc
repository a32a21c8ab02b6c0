// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <algorithm>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/status_macros.h"
#include "harness/cli/command.h"
#include "harness/cli/console_observer.h"
#include "harness/cli/search_options.h"
#include "harness/history/bisect_report.h"
#include "harness/history/peel_report.h"
#include "harness/history/peel_session.h"
#include "harness/history/suspects.h"

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
    app.add_option("--good", good_, "A revision that is good (--axis both: ENGINE,LIBRARY)");
    app.add_option("--bad", bad_, "A revision that is bad");
    app.add_option("--since", options_.since, "Step back no further than this day, YYYY-MM-DD");
    app.add_option("--until", until_,
                   "What is bad: key=pattern,... of verdict, stage, reason, message, blame "
                   "(stage=golden; default: anything but ok)");
    app.add_flag("--ladder", ladder_,
                 "Find the older end among the releases (tags), the newest first, instead of by "
                 "days; then the commit between the two releases that differ");
    app.add_flag("--flaky", flaky_, "The cell is flaky: measure again and again, and say how sure");
    app.add_option("--flake-rate", flake_rate_,
                   "How often it is bad by chance (default: measured at the good end)")
        ->check(CLI::Range(0.001, 0.9));
    app.add_option("--confidence", confidence_, "How sure a flaky search must be")
        ->check(CLI::Range(0.5, 0.9999))
        ->capture_default_str();
    app.add_flag("--peel", peel_, "All that is broken, not only the first: stacked culprits")
        ->excludes("--until")
        ->excludes("--flaky");
    app.add_option("--most", most_, "Peel no more culprits than these")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    app.add_option("--tries", tries_, "Peel: commits to try for one culprit, then go on without")
        ->check(CLI::Range(4, 100000))
        ->capture_default_str();
  }

  absl::StatusOr<int> Run() override {
    start_ = std::chrono::steady_clock::now();
    if (peel_ && options_.kind() != AxisKind::kLibrary)
      return absl::InvalidArgumentError("--peel takes commits out of the library: --axis library");
    ASSIGN_OR_RETURN(const Criterion criterion, Criterion::Parse(until_));
    ConsoleObserver console(options_.quiet || options_.json);
    InterruptSignals signals;
    ASSIGN_OR_RETURN(const OneCell cell, options_.LoadCell(console));
    ASSIGN_OR_RETURN(const HistoryAxis axis,
                     HistoryAxis::Create(cell.planned, options_.kind(), Ends(cell.planned),
                                         cell.preparation->git(), cell.preparation->catalog()));
    ASSIGN_OR_RETURN(const RunDirectory directory,
                     options_.MakeDirectory(peel_ ? "peel" : "bisect", cell.planned, until_));
    SearchLog log(directory.root() / "search.log", console);
    if (peel_) return RunPeel(cell, axis, directory, signals, log);
    InvestigationSetup setup = SetupOf(axis, criterion);
    if (ladder_) {
      ASSIGN_OR_RETURN(setup.steps, Rungs(cell, axis, log));
    }
    Announce(axis, criterion, log);
    SearchSetup session_setup = options_.SetupOf(directory, axis);
    const std::unique_ptr<LocalExecutor> workers =
        MakeWorkers(cell.installation, session_setup.measurement, directory, signals);
    session_setup.measurement.workers = workers.get();
    SearchSession session(std::move(session_setup),
                          {cell.installation, cell.matrix, axis, *cell.preparation, signals, log});
    session.LoadRuntime(*workers);
    if (!flaky_) setup.suspects = Suspects(cell, axis, log);
    Investigation investigation(axis.graph(), std::move(setup));
    RunObserver silent;
    const auto comment = [&](const Trial&, const Outcome& outcome) {
      return CommentOn(investigation, outcome);
    };
    ASSIGN_OR_RETURN(const bool finished, session.Run(investigation, silent, comment));
    if (!finished) {
      std::fprintf(stderr, "bkm: interrupted; the same command goes on from here\n");
      return kExitInterrupted;
    }
    const SearchStatus status = investigation.result().bisection.status;
    log.Line(absl::StrCat("done: ", Name(status)));
    const BisectReport report = MakeBisectReport(
        axis, investigation, criterion,
        [&](const std::string& key) { return session.FindLock(key); }, session.effort(Seconds()));
    RETURN_IF_ERROR(options_.Report("bisect", directory, ToJson(report), ToSummary(report)));
    return status == SearchStatus::kFound ? kExitAsExpected : kExitVerdictsDiffer;
  }

 private:
  absl::StatusOr<int> RunPeel(const OneCell& cell, const HistoryAxis& axis,
                              const RunDirectory& directory, const InterruptSignals& signals,
                              SearchLog& log) const {
    if (!axis.one_is_late()) {
      return absl::InvalidArgumentError(
          "--peel starts at the newest pair, and that must be the bad end");
    }
    log.Line(absl::StrCat("peeling ", axis.Describe(axis.late()), ", of ", axis.graph().size(),
                          " commits"));
    const bool by_sources = HasStaticCheck(cell.planned.cell);
    ApiSession api(options_.selection.GitMirrors(), options_.selection.MatrixFolder());
    RETURN_IF_ERROR(api.AddSources(cell.matrix));
    ASSIGN_OR_RETURN(PeelSession session, PeelSession::Create(options_.SetupOf(directory, axis),
                                                              {cell.installation, cell.matrix, axis,
                                                               *cell.preparation, signals, log},
                                                              by_sources ? &api : nullptr, tries_));
    const absl::StatusOr<PeelResult> result = Peel(session, most_);
    if (absl::IsCancelled(result.status())) {
      std::fprintf(stderr, "bkm: interrupted; the same command goes on from here\n");
      return kExitInterrupted;
    }
    RETURN_IF_ERROR(result.status());
    const PeelReport report =
        MakePeelReport(axis, *result, cell.planned.id, session.measured(), Seconds());
    RETURN_IF_ERROR(options_.Report("peel", directory, ToJson(report), ToSummary(report)));
    return result->works && !result->steps.empty() ? kExitAsExpected : kExitVerdictsDiffer;
  }

  // An order of the search and no more: where the sources cannot be asked, it goes on without.
  std::vector<int> Suspects(const OneCell& cell, const HistoryAxis& axis, SearchLog& log) const {
    ApiSession api(options_.selection.GitMirrors(), options_.selection.MatrixFolder());
    const auto find = [&]() -> absl::StatusOr<std::vector<int>> {
      RETURN_IF_ERROR(api.AddSources(cell.matrix));
      return FindSuspects(api, axis);
    };
    absl::StatusOr<std::vector<int>> suspects = find();
    if (!suspects.ok()) {
      log.Line(absl::StrCat("the sources could not be asked: ", suspects.status().message()));
      return {};
    }
    for (const int commit : *suspects)
      log.Line(absl::StrCat("by the sources it may be ", axis.Describe(commit)));
    return *std::move(suspects);
  }

  absl::StatusOr<std::vector<int>> Rungs(const OneCell& cell, const HistoryAxis& axis,
                                         SearchLog& log) const {
    if (axis.kind() == AxisKind::kBoth || axis.early())
      return absl::InvalidArgumentError(
          "--ladder looks for the older end among the releases of one subject: not with --axis "
          "both, nor with both --good and --bad");
    ASSIGN_OR_RETURN(const auto releases, axis.Releases(cell.preparation->git()));
    if (releases.empty()) {
      return absl::NotFoundError(absl::StrCat("no release of ", axis.SourceAt(axis.late()),
                                              " lies before the newer end (are its tags there?)"));
    }
    std::vector<int> rungs;
    std::vector<std::string> names;
    for (const auto& [commit, name] : releases) {
      rungs.push_back(commit);
      names.push_back(name);
    }
    log.Line(absl::StrCat("releases, the newest first: ", absl::StrJoin(names, "; ")));
    return rungs;
  }

  bool given() const { return !good_.empty() || !bad_.empty(); }
  // The bad end first. Of one that is not named the cell's own revision is taken where the other is
  // named.
  AxisEnds Ends(const PlannedCell& planned) const {
    const std::string own = OwnRevision(planned);
    return {.one = bad_.empty() && given() ? own : bad_,
            .other = good_.empty() && given() ? own : good_,
            .since = options_.since};
  }
  InvestigationSetup SetupOf(const HistoryAxis& axis, const Criterion& criterion) const {
    return {.late = axis.late(),
            .early = axis.early(),
            .criterion = criterion,
            .flaky = flaky_,
            .after = axis.one_is_late() ? Side::kBad : Side::kGood,
            .flake_rate = flake_rate_ > 0 ? std::optional<double>(flake_rate_) : std::nullopt,
            .confidence = confidence_};
  }
  // As an end of the axis is named.
  std::string OwnRevision(const PlannedCell& planned) const {
    const auto revision = [](const std::optional<SubjectSpec>& subject) {
      return subject ? subject->revision : "";
    };
    const std::string engine = revision(planned.cell.engine_subject);
    const std::string library = revision(planned.cell.library_subject);
    return options_.kind() == AxisKind::kEngine ? engine
           : options_.kind() == AxisKind::kBoth ? absl::StrCat(engine, ",", library)
                                                : library;
  }

  void Announce(const HistoryAxis& axis, const Criterion& criterion, SearchLog& log) const {
    const CommitGraph& graph = axis.graph();
    log.Line(absl::StrCat("axis ", Name(axis.kind()), ": ", graph.size(), " commits with ",
                          graph.contents(), " different contents; bad is ", criterion.Text()));
    if (!axis.note().empty()) log.Line(axis.note());
    const char* late = axis.one_is_late() ? "bad" : "good";
    log.Line(absl::StrCat("newer end", given() ? absl::StrCat(" (said to be ", late, ")") : "",
                          ": ", axis.Describe(axis.late())));
    if (!axis.early())
      return log.Line(ladder_ ? "older end: the newest release that differs"
                              : "older end: found by stepping back 1, 2, 4, ... days");
    const char* early = axis.one_is_late() ? "good" : "bad";
    log.Line(absl::StrCat("older end (said to be ", early, "): ", axis.Describe(*axis.early())));
  }

  static std::string CommentOn(const Investigation& investigation, const Outcome& outcome) {
    const std::string comment = absl::StrCat(" -> ", Name(investigation.Classify(outcome.verdict)));
    const int left = investigation.candidates();
    if (investigation.done()) return comment;
    if (investigation.doing() != absl::string_view("bisecting"))
      return absl::StrCat(comment, "; ", investigation.doing());
    if (left == 1) return absl::StrCat(comment, "; one candidate, to be confirmed");
    return left == 0 ? comment : absl::StrCat(comment, "; ", left, " candidates");
  }

  // Since the command began.
  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  std::chrono::steady_clock::time_point start_;
  SearchOptions options_;
  std::string good_;
  std::string bad_;
  std::string until_;
  bool flaky_ = false;
  double flake_rate_ = 0;
  double confidence_ = 0.99;
  bool ladder_ = false;
  bool peel_ = false;
  int most_ = 20;
  int tries_ = 64;
};

}  // namespace

std::unique_ptr<CliCommand> MakeBisectCommand() { return std::make_unique<BisectCommand>(); }

}  // namespace bkm
