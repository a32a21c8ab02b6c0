// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/history/peel_report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

OrderedJson SightJson(const std::optional<PeelSight>& sight) {
  if (!sight) return OrderedJson();
  OrderedJson json = {{"verdict", std::string(Name(sight->verdict.kind))},
                      {"stage", std::string(Name(sight->verdict.stage))},
                      {"reason", sight->verdict.reason},
                      {"message", sight->verdict.message},
                      {"engine_file", OrderedJson()},
                      {"engine_line", OrderedJson()}};
  if (!sight->frames.empty()) {
    json["engine_file"] = sight->frames.back().file;
    json["engine_line"] = sight->frames.back().line;
  }
  return json;
}

OrderedJson CommitJson(const PeelReport& report, int commit) {
  return commit < 0 ? OrderedJson() : report.axis.JsonOf(commit);
}

const char* Confirmed(const PeelStep& step) {
  if (step.seen) return "by run";
  return step.builds_on >= 0 ? "builds on a culprit" : "static only";
}

OrderedJson StepJson(const PeelReport& report, const PeelStep& step) {
  OrderedJson candidates = OrderedJson::array();
  if (step.culprit.commit < 0) {
    for (const int commit : step.culprit.candidates)
      candidates.push_back(report.axis.JsonOf(commit));
  }
  OrderedJson breaks = OrderedJson::array();
  for (const Violation& broken : step.breaks) breaks.push_back(OrderedJson(ToJson(broken)));
  return {{"commit", CommitJson(report, step.culprit.commit)},
          {"candidates", std::move(candidates)},
          {"why", step.culprit.why},
          {"confirmed", Confirmed(step)},
          {"failure", SightJson(step.seen)},
          {"breaks", std::move(breaks)},
          {"taken_out_by", step.removed_by ? OrderedJson(Name(*step.removed_by)) : OrderedJson()},
          {"taken_out_at", CommitJson(report, step.taken_out_at)},
          {"built_on_by", CommitJson(report, step.built_on_by)},
          {"builds_on", CommitJson(report, step.builds_on)},
          {"library_runs", step.library_runs ? OrderedJson(*step.library_runs) : OrderedJson()},
          {"note", step.note}};
}

std::string WhoText(const PeelReport& report, const PeelCulprit& culprit) {
  if (culprit.commit >= 0) return report.axis.Describe(culprit.commit);
  if (culprit.candidates.empty()) return absl::StrCat("no commit: ", culprit.why);
  return absl::StrCat("one of ", culprit.candidates.size(), " commits up to ",
                      report.axis.Describe(culprit.candidates.back()), ": ", culprit.why);
}

const char* WayText(Removal removal) {
  switch (removal) {
    case Removal::kRevert:
      return "its change reverted";
    case Removal::kOlderFiles:
      return "its change reverted, with older files where later changes meet it";
    case Removal::kOlderModules:
      return "the modules that the engine asks as before it";
    case Removal::kStub:
      return "a stub for what is missing";
  }
  return "";
}

}  // namespace

OrderedJson ToJson(const PeelReport& report) {
  OrderedJson culprits = OrderedJson::array();
  for (const PeelStep& step : report.result.steps) culprits.push_back(StepJson(report, step));
  return {{"schema", 1},
          {"cell", report.cell},
          {"newest", report.axis.JsonOf(report.axis.late())},
          {"reached", report.axis.JsonOf(report.result.reached)},
          {"works", report.result.works},
          {"why", report.result.why},
          {"last", SightJson(report.result.last)},
          {"culprits", std::move(culprits)},
          {"measured", report.measured},
          {"seconds", report.seconds}};
}

std::string ToSummary(const PeelReport& report) {
  const PeelResult& result = report.result;
  std::string text;
  int number = 0;
  for (const PeelStep& step : result.steps) {
    absl::StrAppend(&text, ++number, ". ", WhoText(report, step.culprit), "\n");
    if (step.seen) {
      absl::StrAppend(&text, "   confirmed by run: ", ShortText(step.seen->verdict), ": ",
                      step.seen->verdict.message, "\n");
    } else if (step.builds_on >= 0) {
      absl::StrAppend(&text, "   in the way: it builds on ",
                      report.axis.Describe(step.builds_on, false), "\n");
    } else {
      absl::StrAppend(&text, "   static only: no run came to it\n");
    }
    for (const Violation& broken : step.breaks) absl::StrAppend(&text, "   ", ToText(broken), "\n");
    if (step.removed_by) {
      absl::StrAppend(&text, "   taken out: ", WayText(*step.removed_by), "\n");
    }
    if (step.taken_out_at >= 0) {
      absl::StrAppend(&text, "   up to ", report.axis.Describe(step.taken_out_at, false),
                      ": not out of ", report.axis.Describe(step.built_on_by), "\n");
    }
    if (!step.note.empty()) absl::StrAppend(&text, "   note: ", step.note, "\n");
  }
  if (result.works && result.steps.empty()) {
    absl::StrAppend(&text, "Nothing is broken: the pair is ok\n");
  } else if (result.works) {
    absl::StrAppend(&text, "Without those taken out the pair is ok\n");
  } else {
    if (result.reached != report.axis.late() && result.last) {
      absl::StrAppend(&text, "Without them the pair at ", report.axis.Describe(result.reached),
                      " is ", ShortText(result.last->verdict), "\n");
    }
    absl::StrAppend(&text, "It does not go on: ", result.why, "\n");
  }
  absl::StrAppend(
      &text, absl::StrFormat("\n%d cells measured; %.0f s\n", report.measured, report.seconds));
  return Printable(text);
}

}  // namespace bkm
