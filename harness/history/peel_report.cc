// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/history/peel_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/base/check.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

PeelFailure FailureOf(const PeelSight& sight) {
  PeelFailure failure{.verdict = sight.verdict};
  if (!sight.frames.empty()) {
    failure.engine_file = sight.frames.back().file;
    failure.engine_line = sight.frames.back().line;
  }
  return failure;
}

ReportedCulprit CulpritOf(const HistoryAxis& axis, const PeelStep& step) {
  const auto named = [&](int commit) {
    return commit < 0 ? std::nullopt : std::optional<NamedCommit>(axis.Named(commit));
  };
  ReportedCulprit culprit{.commit = named(step.culprit.commit),
                          .why = step.culprit.why,
                          .breaks = step.breaks,
                          .taken_out_by = step.removed_by,
                          .taken_out_at = named(step.taken_out_at),
                          .built_on_by = named(step.built_on_by),
                          .builds_on = named(step.builds_on),
                          .library_runs = step.library_runs,
                          .note = step.note};
  for (const Violation& broken : step.breaks)
    HARNESS_CHECK(broken.grade != Grade::kPossible) << "PeelWorld::Breaks names certain failures";
  if (step.seen) culprit.failure = FailureOf(*step.seen);
  if (culprit.commit) return culprit;
  for (const int commit : step.culprit.candidates) culprit.candidates.push_back(axis.Named(commit));
  return culprit;
}

std::string WhoText(const ReportedCulprit& culprit) {
  if (culprit.commit) return ToText(*culprit.commit);
  if (culprit.candidates.empty()) return absl::StrCat("no commit: ", culprit.why);
  return absl::StrCat("one of ", culprit.candidates.size(), " commits up to ",
                      ToText(culprit.candidates.back()), ": ", culprit.why);
}

const char* WayText(Removal removal) {
  switch (removal) {
    case Removal::kRevert:
      return "reverting its change";
    case Removal::kOlderFiles:
      return "reverting its change, with older files where later changes conflict";
    case Removal::kOlderModules:
      return "restoring the modules that the engine uses as they were before it";
    case Removal::kStub:
      return "a stub for what is missing";
  }
  return "";
}

std::string CulpritText(const ReportedCulprit& culprit) {
  std::string text = absl::StrCat(WhoText(culprit), "\n");
  if (culprit.failure) {
    absl::StrAppend(&text, "   confirmed by run: ", ShortText(culprit.failure->verdict), ": ",
                    culprit.failure->verdict.message, "\n");
  } else if (culprit.builds_on) {
    absl::StrAppend(&text, "   in the way: it builds on ", ToText(*culprit.builds_on, false), "\n");
  } else {
    absl::StrAppend(&text, "   static only: no run reached it\n");
  }
  for (const Violation& broken : culprit.breaks)
    absl::StrAppend(&text, "   ", ToText(broken), "\n");
  if (culprit.taken_out_by)
    absl::StrAppend(&text, "   removed by ", WayText(*culprit.taken_out_by), "\n");
  if (culprit.taken_out_at && culprit.built_on_by) {
    absl::StrAppend(&text, "   removable up to ", ToText(*culprit.taken_out_at, false),
                    "; the next commit builds on it: ", ToText(*culprit.built_on_by), "\n");
  }
  if (!culprit.note.empty()) absl::StrAppend(&text, "   note: ", culprit.note, "\n");
  return text;
}

std::string EndText(const PeelReport& report) {
  if (report.works) {
    return report.culprits.empty() ? "Nothing is broken: the pair is ok\n"
                                   : "Without these commits the pair is ok\n";
  }
  return absl::StrCat(
      report.reached == report.newest
          ? ""
          : absl::StrCat("Without these commits the pair at ", ToText(report.reached), " is ",
                         ShortText(report.last.verdict), "\n"),
      "Stopped: ", report.why, "\n");
}

}  // namespace

const char* ReportedCulprit::confirmed() const {
  if (failure) return "by run";
  return builds_on ? "builds on a culprit" : "static only";
}

PeelReport MakePeelReport(const HistoryAxis& axis, const PeelResult& result, std::string cell,
                          int measured, double seconds) {
  PeelReport report{.cell = std::move(cell),
                    .newest = axis.Named(axis.late()),
                    .reached = axis.Named(result.reached),
                    .works = result.works,
                    .why = result.why,
                    .measured = measured,
                    .seconds = seconds};
  if (result.last) report.last = FailureOf(*result.last);
  for (const PeelStep& step : result.steps) report.culprits.push_back(CulpritOf(axis, step));
  return report;
}

static void Describe(Fields& fields, PeelFailure& failure) {
  DescribeVerdict(fields, failure.verdict);
  fields.Field("engine_file", failure.engine_file);
  fields.Field("engine_line", failure.engine_line);
}

// peel.json has these keys in alphabetical order.
static void Describe(Fields& fields, Violation& broken) {
  fields.Field("asked", broken.asked);
  fields.Field("engine_file", broken.engine_file);
  fields.Field("engine_line", broken.engine_line);
  Grade grade = std::min(broken.grade, Grade::kConstruct);  // the default has no name here
  fields.Name("grade", grade, NamesUpTo(Grade::kConstruct));
  broken.grade = grade;
  fields.Field("problem", broken.problem);
  fields.Field("reason", broken.reason);
  fields.Field("where", broken.where);
}

static void Describe(Fields& fields, ReportedCulprit& culprit) {
  fields.Field("commit", culprit.commit);
  fields.Field("candidates", culprit.candidates);
  fields.Field("why", culprit.why);
  fields.Derived("confirmed", std::string(culprit.confirmed()));
  fields.Field("failure", culprit.failure);
  fields.Field("breaks", culprit.breaks);
  DescribeName(fields, "taken_out_by", culprit.taken_out_by, Removal::kStub);
  // Older files lack these three, and PeelReport::reached.
  fields.Field("taken_out_at", culprit.taken_out_at, Presence::kOptional);
  fields.Field("built_on_by", culprit.built_on_by, Presence::kOptional);
  fields.Field("builds_on", culprit.builds_on, Presence::kOptional);
  fields.Field("library_runs", culprit.library_runs);
  fields.Field("note", culprit.note);
}

void Describe(Fields& fields, PeelReport& report) {
  DescribeSchema(fields);
  fields.Field("cell", report.cell);
  fields.Field("newest", report.newest);
  fields.Field("reached", report.reached, Presence::kOptional);
  fields.Field("works", report.works);
  fields.Field("why", report.why);
  fields.Field("last", report.last);
  fields.Field("culprits", report.culprits);
  fields.Field("measured", report.measured);
  fields.Field("seconds", report.seconds);
}

OrderedJson ToJson(const PeelReport& report) { return WriteFields(report); }

absl::StatusOr<PeelReport> PeelReportFromJson(const Json& json, const std::string& origin) {
  return ReadFields<PeelReport>(json, origin);
}

std::string ToSummary(const PeelReport& report) {
  std::string text;
  int number = 0;
  for (const ReportedCulprit& culprit : report.culprits)
    absl::StrAppend(&text, ++number, ". ", CulpritText(culprit));
  absl::StrAppend(
      &text, EndText(report),
      absl::StrFormat("\n%d cells measured; %.0f s\n", report.measured, report.seconds));
  return Printable(text);
}

}  // namespace bkm
