// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/history/timeline_report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

OrderedJson CommitJson(const TimelineReport& report, int commit) {
  OrderedJson json = report.axis.JsonOf(commit);
  json["merge"] = report.axis.CommitAt(commit).parents.size() > 1;
  return json;
}

bool IsGood(const Outcome& outcome) { return outcome.verdict.kind == VerdictKind::kOk; }

OrderedJson StretchJson(const TimelineReport& report, const Stretch& stretch) {
  const Outcome& outcome = *report.timeline.OutcomeOf(stretch.first);
  return {{"state", IsGood(outcome) ? "good" : "bad"},
          {"signature", stretch.signature},
          {"verdict", std::string(Name(outcome.verdict.kind))},
          {"stage", std::string(Name(outcome.verdict.stage))},
          {"reason", outcome.verdict.reason},
          {"message", outcome.verdict.message},
          {"first", CommitJson(report, stretch.first)},
          {"last", CommitJson(report, stretch.last)},
          {"commits", stretch.commits},
          {"measured", stretch.measured}};
}

// What the later side of a boundary is, seen from the earlier one.
const char* ChangeOf(const TimelineReport& report, const Boundary& boundary) {
  const bool before = IsGood(*report.timeline.OutcomeOf(boundary.before));
  const bool after = IsGood(*report.timeline.OutcomeOf(boundary.after));
  return before ? "broke" : after ? "mended" : "differently bad";
}

// Whether both sides ran in one runtime.
bool InOneRuntime(const TimelineReport& report, const Boundary& boundary) {
  return report.timeline.OutcomeOf(boundary.before)->lock ==
         report.timeline.OutcomeOf(boundary.after)->lock;
}

OrderedJson BoundaryJson(const TimelineReport& report, const Boundary& boundary) {
  OrderedJson candidates = OrderedJson::array();
  for (const int commit : boundary.candidates) candidates.push_back(CommitJson(report, commit));
  const bool exact = boundary.candidates.size() == 1;
  return {{"change", ChangeOf(report, boundary)},
          {"before", CommitJson(report, boundary.before)},
          {"culprit", exact ? CommitJson(report, boundary.after) : OrderedJson()},
          {"candidates", std::move(candidates)},
          {"same_runtime", InOneRuntime(report, boundary)},
          {"confirmed", boundary.confirmed ? OrderedJson(*boundary.confirmed) : OrderedJson()}};
}

}  // namespace

OrderedJson ToJson(const TimelineReport& report) {
  const TimelineResult& result = report.timeline.result();
  OrderedJson stretches = OrderedJson::array(), boundaries = OrderedJson::array();
  for (const Stretch& stretch : result.stretches) stretches.push_back(StretchJson(report, stretch));
  for (const Boundary& boundary : result.boundaries)
    boundaries.push_back(BoundaryJson(report, boundary));
  return {{"schema", 1},
          {"axis", Name(report.axis.kind())},
          {"cell", report.cell},
          {"stretches", std::move(stretches)},
          {"boundaries", std::move(boundaries)},
          {"resolution", result.resolution},
          {"commits", report.axis.graph().size()},
          {"contents", report.axis.graph().contents()},
          {"probes", report.session.probes()},
          {"measured", report.session.measured()},
          {"seconds", report.seconds}};
}

std::string ToSummary(const TimelineReport& report) {
  const TimelineResult& result = report.timeline.result();
  std::string text;
  for (size_t i = 0; i < result.stretches.size(); ++i) {
    const Stretch& stretch = result.stretches[i];
    const Outcome& outcome = *report.timeline.OutcomeOf(stretch.first);
    absl::StrAppend(&text, absl::StrFormat("%s .. %s  %-4s  %s  (%d commits, %d measured)\n",
                                           report.axis.CommitAt(stretch.first).date,
                                           report.axis.CommitAt(stretch.last).date,
                                           IsGood(outcome) ? "good" : "bad", stretch.signature,
                                           stretch.commits, stretch.measured));
    if (!IsGood(outcome)) absl::StrAppend(&text, "    ", outcome.verdict.message, "\n");
    if (i + 1 == result.stretches.size()) continue;
    const Boundary& boundary = result.boundaries[i];
    absl::StrAppend(&text, "  ", ChangeOf(report, boundary), " by ",
                    boundary.candidates.size() == 1
                        ? ""
                        : absl::StrCat("one of ", boundary.candidates.size(), " commits up to "),
                    report.axis.Describe(boundary.after),
                    InOneRuntime(report, boundary) ? "" : " (and the runtime changed with it)",
                    !boundary.confirmed   ? ""
                    : *boundary.confirmed ? " (confirmed)"
                                          : " (not confirmed: it is flaky)",
                    "\n");
  }
  absl::StrAppend(
      &text,
      result.resolution == 0
          ? std::string("\nEvery commit is measured")
          : absl::StrFormat("\nA stretch of up to %d commits between measured ones that are alike "
                            "would not be seen (--every)",
                            result.resolution),
      absl::StrFormat("; %d probes, %d of them measured now, of %d commits (%d contents); %.0f s\n",
                      report.session.probes(), report.session.measured(),
                      report.axis.graph().size(), report.axis.graph().contents(), report.seconds));
  return Printable(text);
}

}  // namespace bkm
