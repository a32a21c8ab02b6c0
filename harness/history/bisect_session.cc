// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/history/bisect_session.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/status_macros.h"
#include "harness/history/bisect_report.h"
#include "harness/history/peel_report.h"
#include "harness/history/peel_session.h"
#include "harness/history/suspects.h"

namespace bkm {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Suspects only order the search: where the sources cannot be checked, it goes on without.
std::vector<int> SuspectsOf(const HistorySearchContext& context) {
  const auto find = [&]() -> absl::StatusOr<std::vector<int>> {
    RETURN_IF_ERROR(context.api.AddSources(context.cell.matrix));
    return FindSuspects(context.api, context.search.axis);
  };
  absl::StatusOr<std::vector<int>> suspects = find();
  if (!suspects.ok()) {
    context.search.log.Line(absl::StrCat("the static check failed: ", suspects.status().message()));
    return {};
  }
  for (const int commit : *suspects) {
    context.search.log.Line(
        absl::StrCat("suspect of the static check: ", context.search.axis.Describe(commit)));
  }
  return *std::move(suspects);
}

absl::StatusOr<std::vector<int>> RungsOf(const HistorySearchContext& context) {
  const HistoryAxis& axis = context.search.axis;
  if (axis.kind() == AxisKind::kBoth || axis.early()) {
    return absl::InvalidArgumentError(
        "--ladder finds the older end among the releases of one subject: it does not go with "
        "--axis both, nor with both --good and --bad");
  }
  ASSIGN_OR_RETURN(const auto releases, axis.Releases(context.cell.preparation->git()));
  if (releases.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no release of ", axis.SourceAt(axis.late()),
                     " is older than the newer end (does the repository have its tags?)"));
  }
  std::vector<int> rungs;
  std::vector<std::string> names;
  for (const auto& [commit, name] : releases) {
    rungs.push_back(commit);
    names.push_back(name);
  }
  context.search.log.Line(absl::StrCat("releases, newest first: ", absl::StrJoin(names, "; ")));
  return rungs;
}

void Announce(const HistoryAxis& axis, const BisectOptions& options, const Criterion& criterion,
              SearchLog& log) {
  const CommitGraph& graph = axis.graph();
  log.Line(absl::StrCat("axis ", Name(axis.kind()), ": ", graph.size(), " commits with ",
                        graph.contents(), " different contents; bad is ", criterion.Text()));
  if (!axis.note().empty()) log.Line(axis.note());
  const char* late = axis.one_is_late() ? "bad" : "good";
  log.Line(absl::StrCat("newer end",
                        options.names_an_end() ? absl::StrCat(" (given as ", late, ")") : "", ": ",
                        axis.Describe(axis.late())));
  if (!axis.early()) {
    log.Line(options.ladder ? "older end: the newest release that differs"
                            : "older end: found by stepping back 1, 2, 4, ... days");
    return;
  }
  const char* early = axis.one_is_late() ? "good" : "bad";
  log.Line(absl::StrCat("older end (given as ", early, "): ", axis.Describe(*axis.early())));
}

std::string CommentOn(const Investigation& investigation, const Outcome& outcome) {
  const std::string comment = absl::StrCat(" -> ", Name(investigation.Classify(outcome.verdict)));
  const int left = investigation.candidates();
  if (investigation.done()) return comment;
  if (investigation.doing() != absl::string_view("bisecting"))
    return absl::StrCat(comment, "; ", investigation.doing());
  if (left == 1) return absl::StrCat(comment, "; one candidate left, to be confirmed");
  return left == 0 ? comment : absl::StrCat(comment, "; ", left, " candidates");
}

}  // namespace

AxisEnds EndsOf(const BisectOptions& options, AxisKind axis, const PlannedCell& cell) {
  const auto revision = [](const std::optional<SubjectSpec>& subject) {
    return subject ? subject->revision : "";
  };
  const std::string engine = revision(cell.cell.engine_subject);
  const std::string library = revision(cell.cell.library_subject);
  const std::string own = axis == AxisKind::kEngine ? engine
                          : axis == AxisKind::kBoth ? absl::StrCat(engine, ",", library)
                                                    : library;
  const bool fill = options.names_an_end();
  return {.one = options.bad.empty() && fill ? own : options.bad,
          .other = options.good.empty() && fill ? own : options.good,
          .since = options.since};
}

absl::StatusOr<std::optional<BisectAnswer>> BisectCell(HistorySearchContext context,
                                                       const BisectOptions& options,
                                                       const Criterion& criterion) {
  const HistoryAxis& axis = context.search.axis;
  InvestigationSetup setup{.late = axis.late(),
                           .early = axis.early(),
                           .criterion = criterion,
                           .flaky = options.flaky,
                           .after = axis.one_is_late() ? Side::kBad : Side::kGood,
                           .flake_rate = options.flake_rate,
                           .confidence = options.confidence};
  if (options.ladder) {
    ASSIGN_OR_RETURN(setup.steps, RungsOf(context));
  }
  Announce(axis, options, criterion, context.search.log);
  SearchSession session(std::move(context.setup), context.search);
  session.LoadRuntime();
  if (!options.flaky) setup.suspects = SuspectsOf(context);
  Investigation investigation(axis.graph(), std::move(setup));
  const auto comment = [&](const Trial&, const Outcome& outcome) {
    return CommentOn(investigation, outcome);
  };
  ASSIGN_OR_RETURN(const bool finished, session.Run(investigation, comment));
  if (!finished) return std::nullopt;
  const SearchStatus status = investigation.result().bisection.status;
  context.search.log.Line(absl::StrCat("done: ", Name(status)));
  const BisectReport report = MakeBisectReport(
      axis, investigation, criterion, [&](const std::string& key) { return session.FindLock(key); },
      session.effort(SecondsSince(context.start)));
  return BisectAnswer{.found = status == SearchStatus::kFound,
                      .json = ToJson(report),
                      .summary = ToSummary(report)};
}

absl::StatusOr<std::optional<BisectAnswer>> PeelCell(HistorySearchContext context,
                                                     const PeelOptions& options) {
  const HistoryAxis& axis = context.search.axis;
  if (!axis.one_is_late()) {
    return absl::InvalidArgumentError("--peel starts at the newer end, which must be the bad one");
  }
  context.search.log.Line(absl::StrCat("peeling ", axis.Describe(axis.late()), ", of ",
                                       axis.graph().size(), " commits"));
  RETURN_IF_ERROR(context.api.AddSources(context.cell.matrix));
  ApiSession* const sources = HasStaticCheck(context.cell.planned.cell) ? &context.api : nullptr;
  ASSIGN_OR_RETURN(
      PeelSession session,
      PeelSession::Create(std::move(context.setup), context.search, sources, options.most_trials));
  const absl::StatusOr<PeelResult> result = Peel(session, options.most_culprits);
  if (absl::IsCancelled(result.status())) return std::nullopt;
  RETURN_IF_ERROR(result.status());
  const PeelReport report = MakePeelReport(axis, *result, context.cell.planned.id,
                                           session.measured(), SecondsSince(context.start));
  return BisectAnswer{.found = result->works && !result->steps.empty(),
                      .json = ToJson(report),
                      .summary = ToSummary(report)};
}

}  // namespace bkm
