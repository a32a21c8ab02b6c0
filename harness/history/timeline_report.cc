// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/history/timeline_report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

TimelineCommit At(const HistoryAxis& axis, int commit) {
  return {axis.Named(commit), axis.CommitAt(commit).parents.size() > 1};
}

ReportedBoundary Reported(const HistoryAxis& axis, const Timeline& timeline,
                          const Boundary& boundary) {
  const Outcome& before = *timeline.OutcomeOf(boundary.before);
  const Outcome& after = *timeline.OutcomeOf(boundary.after);
  ReportedBoundary reported{.change = before.verdict.kind == VerdictKind::kOk ? Change::kBroke
                                      : after.verdict.kind == VerdictKind::kOk
                                          ? Change::kMended
                                          : Change::kDifferentlyBad,
                            .before = At(axis, boundary.before),
                            .same_runtime = before.lock == after.lock,
                            .confirmed = boundary.confirmed};
  for (const int commit : boundary.candidates) reported.candidates.push_back(At(axis, commit));
  if (boundary.candidates.size() == 1) reported.culprit = At(axis, boundary.after);
  return reported;
}

std::string StretchText(const ReportedStretch& stretch) {
  const std::string line = absl::StrFormat(
      "%s .. %s  %-4s  %s  (%d commits, %d measured)\n", stretch.first.date, stretch.last.date,
      stretch.good() ? "good" : "bad", stretch.signature, stretch.commits, stretch.measured);
  return stretch.good() ? line : absl::StrCat(line, "    ", stretch.verdict.message, "\n");
}

std::string BoundaryText(const ReportedBoundary& boundary) {
  const size_t candidates = boundary.candidates.size();
  return absl::StrCat("  ", Name(boundary.change), " by ",
                      candidates == 1 ? "" : absl::StrCat("one of ", candidates, " commits up to "),
                      candidates == 0 ? "" : ToText(boundary.candidates.back()),
                      boundary.same_runtime ? "" : " (the runtime changed too)",
                      !boundary.confirmed   ? ""
                      : *boundary.confirmed ? " (confirmed)"
                                            : " (not confirmed: flaky)",
                      "\n");
}

}  // namespace

const char* Name(Change change) {
  switch (change) {
    case Change::kBroke:
      return "broke";
    case Change::kMended:
      return "mended";
    case Change::kDifferentlyBad:
      return "differently bad";
  }
  return "";
}

TimelineReport MakeTimelineReport(const HistoryAxis& axis, const Timeline& timeline,
                                  const SearchEffort& effort) {
  const TimelineResult& result = timeline.result();
  TimelineReport report{.axis = axis.kind(),
                        .cell = axis.CellAt(axis.late()).id,
                        .resolution = result.resolution,
                        .effort = effort};
  for (const Stretch& stretch : result.stretches) {
    report.stretches.push_back({.signature = stretch.signature,
                                .verdict = timeline.OutcomeOf(stretch.first)->verdict,
                                .first = At(axis, stretch.first),
                                .last = At(axis, stretch.last),
                                .commits = stretch.commits,
                                .measured = stretch.measured});
  }
  for (const Boundary& boundary : result.boundaries)
    report.boundaries.push_back(Reported(axis, timeline, boundary));
  return report;
}

static void Describe(Fields& fields, TimelineCommit& commit) {
  Describe(fields, static_cast<NamedCommit&>(commit));
  fields.Field("merge", commit.merge);
}

static void Describe(Fields& fields, ReportedStretch& stretch) {
  fields.Derived("state", std::string(stretch.good() ? "good" : "bad"));
  fields.Field("signature", stretch.signature);
  DescribeVerdict(fields, stretch.verdict);
  fields.Field("first", stretch.first);
  fields.Field("last", stretch.last);
  fields.Field("commits", stretch.commits);
  fields.Field("measured", stretch.measured);
}

static void Describe(Fields& fields, ReportedBoundary& boundary) {
  fields.Name("change", boundary.change, NamesUpTo(Change::kDifferentlyBad));
  fields.Field("before", boundary.before);
  fields.Field("culprit", boundary.culprit);
  fields.Field("candidates", boundary.candidates);
  fields.Field("same_runtime", boundary.same_runtime);
  fields.Field("confirmed", boundary.confirmed);
}

void Describe(Fields& fields, TimelineReport& report) {
  DescribeSchema(fields);
  fields.Name("axis", report.axis, NamesUpTo(AxisKind::kBoth));
  fields.Field("cell", report.cell);
  fields.Field("stretches", report.stretches);
  fields.Field("boundaries", report.boundaries);
  fields.Field("resolution", report.resolution);
  DescribeEffort(fields, report.effort);
}

OrderedJson ToJson(const TimelineReport& report) { return WriteFields(report); }

absl::StatusOr<TimelineReport> TimelineReportFromJson(const Json& json, const std::string& origin) {
  return ReadFields<TimelineReport>(json, origin);
}

std::string ToSummary(const TimelineReport& report) {
  std::string text;
  for (size_t i = 0; i < report.stretches.size(); ++i) {
    absl::StrAppend(&text, StretchText(report.stretches[i]));
    if (i < report.boundaries.size()) absl::StrAppend(&text, BoundaryText(report.boundaries[i]));
  }
  absl::StrAppend(
      &text,
      report.resolution == 0
          ? std::string("\nEvery commit is measured")
          : absl::StrFormat("\nA change that lasts up to %d commits can be missed between equal "
                            "measured commits (--every)",
                            report.resolution),
      "; ", EffortText(report.effort), "\n");
  return Printable(text);
}

}  // namespace bkm
