// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/history/bisect_report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

OrderedJson CommitJson(const BisectReport& report, int commit) {
  OrderedJson json = report.axis.JsonOf(commit);
  if (const Outcome* outcome = report.investigation.OutcomeOf(commit)) {
    json["verdict"] = std::string(Name(outcome->verdict.kind));
    json["stage"] = std::string(Name(outcome->verdict.stage));
    json["reason"] = outcome->verdict.reason;
    json["message"] = outcome->verdict.message;
    json["lock"] = outcome->lock;
  }
  return json;
}

OrderedJson CommitsJson(const BisectReport& report, const std::vector<int>& commits) {
  OrderedJson json = OrderedJson::array();
  for (const int commit : commits) json.push_back(CommitJson(report, commit));
  return json;
}

// Packages that differ between two runtimes: name, version before, version after.
std::vector<std::array<std::string, 3>> ChangedPackages(const RuntimeLock* before,
                                                        const RuntimeLock* after) {
  std::vector<std::array<std::string, 3>> changed;
  if (!before || !after) return changed;
  std::map<std::string, std::array<std::string, 3>> all;
  for (const LockedPackage& package : before->packages)
    all[package.name] = {package.name, package.version, ""};
  for (const LockedPackage& package : after->packages) {
    all[package.name][0] = package.name;
    all[package.name][2] = package.version;
  }
  for (const auto& [name, versions] : all) {
    if (versions[1] != versions[2]) changed.push_back(versions);
  }
  return changed;
}

OrderedJson RuntimeJson(const BisectReport& report) {
  const InvestigationResult& result = report.investigation.result();
  if (result.runtime_before.empty()) return OrderedJson();
  OrderedJson changed = OrderedJson::array();
  for (const auto& [name, before, after] :
       ChangedPackages(report.session.FindLock(result.runtime_before),
                       report.session.FindLock(result.runtime_after)))
    changed.push_back({{"package", name}, {"before", before}, {"after", after}});
  return {{"before", result.runtime_before},
          {"after", result.runtime_after},
          {"changed", std::move(changed)}};
}

OrderedJson FlakyJson(const BisectReport& report) {
  const InvestigationResult& result = report.investigation.result();
  if (!result.flaky) return OrderedJson();
  const FlakyResult& flaky = *result.flaky;
  OrderedJson likely = OrderedJson::array();
  for (const auto& [commit, weight] : flaky.likely) {
    if (weight < 0.001 || likely.size() == 10) break;
    likely.push_back({{"commit", report.axis.CommitAt(commit).id}, {"probability", weight}});
  }
  return {{"confidence", flaky.confidence},
          {"no_culprit", flaky.no_culprit},
          {"flake_rate", flaky.flake_rate},
          {"miss_rate", flaky.miss_rate},
          {"runs", flaky.runs},
          {"likely", std::move(likely)}};
}

OrderedJson MadeByJson(const InvestigationResult& result) {
  const bool found = result.bisection.status == SearchStatus::kFound;
  return found ? OrderedJson(Name(result.made_by)) : OrderedJson();
}

std::string MadeByText(const BisectReport& report) {
  const InvestigationResult& result = report.investigation.result();
  if (result.runtime_before.empty()) return "";
  std::string text;
  switch (result.made_by) {
    case MadeBy::kCommit:
      text = "the commit made it, in either runtime";
      break;
    case MadeBy::kRuntime:
      text = "the runtime made it: the commit makes no difference in one runtime";
      break;
    case MadeBy::kBoth:
      text = "it takes both, the commit and its runtime";
      break;
    case MadeBy::kEither:
      text = "the commit alone is enough, and so is the runtime alone";
      break;
    case MadeBy::kUndecided:
      text = "commit and runtime changed together, and which made it cannot be judged";
      break;
  }
  std::vector<std::string> lines = {absl::StrCat("  runtime ", result.runtime_before.substr(0, 12),
                                                 " -> ", result.runtime_after.substr(0, 12), ": ",
                                                 text)};
  for (const auto& [name, before, after] :
       ChangedPackages(report.session.FindLock(result.runtime_before),
                       report.session.FindLock(result.runtime_after)))
    lines.push_back(absl::StrCat("    ", name, " ", before.empty() ? "none" : before, " -> ",
                                 after.empty() ? "none" : after));
  std::string all;
  for (const std::string& line : lines) absl::StrAppend(&all, line, "\n");
  return all;
}

std::string SideLine(const BisectReport& report, const char* name, int commit) {
  const Outcome* outcome = report.investigation.OutcomeOf(commit);
  if (!outcome) return "";
  return absl::StrCat(
      "  ", name, " ", report.axis.Describe(commit, /*with_title=*/false), ": ",
      ShortText(outcome->verdict),
      outcome->verdict.kind == VerdictKind::kOk ? "" : absl::StrCat(": ", outcome->verdict.message),
      "\n");
}

}  // namespace

OrderedJson ToJson(const BisectReport& report) {
  const InvestigationResult& result = report.investigation.result();
  const BisectionResult& found = result.bisection;
  const CommitGraph& graph = report.axis.graph();
  const bool mended = found.after == Side::kGood;
  const auto end = [&](std::optional<int> commit) {
    return commit ? CommitJson(report, *commit) : OrderedJson();
  };
  return {{"schema", 1},
          {"status", Name(found.status)},
          {"why", found.why},
          {"axis", Name(report.axis.kind())},
          {"cell", report.cell},
          {"bad_means", report.criterion.Text()},
          {"direction", found.after == Side::kNeither ? OrderedJson()
                        : mended                      ? OrderedJson("mended")
                                                      : OrderedJson("broke")},
          {"older_end", end(found.early)},
          {"newer_end", end(found.late)},
          {"culprit", found.culprit >= 0 ? CommitJson(report, found.culprit) : OrderedJson()},
          {"parents", CommitsJson(report, found.parents)},
          {"candidates", CommitsJson(report, found.candidates)},
          {"made_by", MadeByJson(result)},
          {"runtime", RuntimeJson(report)},
          {"flaky", FlakyJson(report)},
          {"commits", graph.size()},
          {"contents", graph.contents()},
          {"probes", report.session.probes()},
          {"measured", report.session.measured()},
          {"seconds", report.seconds}};
}

std::string ToSummary(const BisectReport& report) {
  const InvestigationResult& result = report.investigation.result();
  const BisectionResult& found = result.bisection;
  std::string text;
  if (found.culprit >= 0) {
    absl::StrAppend(&text, found.after == Side::kBad ? "Broken by " : "Mended by ",
                    report.axis.Describe(found.culprit), "\n");
    for (const int parent : found.parents)
      absl::StrAppend(&text, SideLine(report, "before:", parent));
    absl::StrAppend(&text, SideLine(report, "after: ", found.culprit));
    // The newer end may be bad for a reason of its own, or of a later commit.
    const Outcome* end = report.investigation.OutcomeOf(found.late);
    const Outcome* culprit = report.investigation.OutcomeOf(found.culprit);
    if (end && culprit && ShortText(end->verdict) != ShortText(culprit->verdict))
      absl::StrAppend(&text, SideLine(report, "differs from the newer end", found.late),
                      "  which another commit made: --until \"reason=", end->verdict.reason,
                      "\" finds it, and bkm timeline all of them\n");
  } else {
    absl::StrAppend(&text, "No culprit is named (", Name(found.status), "): ", found.why, "\n");
  }
  absl::StrAppend(&text, MadeByText(report));
  if (found.status == SearchStatus::kAmbiguous || found.status == SearchStatus::kUnstable) {
    absl::StrAppend(&text, "It is one of:\n");
    for (const int commit : found.candidates)
      absl::StrAppend(&text, "  ", report.axis.Describe(commit), "\n");
  }
  if (result.flaky) {
    absl::StrAppend(
        &text, absl::StrFormat("  flaky: %.1f %% sure after %d runs; seen by chance in %.0f %% "
                               "of runs before, missed in %.0f %% after\n",
                               100 * result.flaky->confidence, result.flaky->runs,
                               100 * result.flaky->flake_rate, 100 * result.flaky->miss_rate));
  }
  absl::StrAppend(
      &text,
      absl::StrFormat("\n%d probes, %d of them measured now, of %d commits (%d contents); "
                      "%.0f s\n",
                      report.session.probes(), report.session.measured(),
                      report.axis.graph().size(), report.axis.graph().contents(), report.seconds));
  return Printable(text);
}

}  // namespace bkm
