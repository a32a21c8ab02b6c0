// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/site/history_page.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "harness/base/status_macros.h"
#include "harness/report/labels.h"
#include "harness/runner/run_directory.h"
#include "harness/site/cell_page.h"
#include "harness/site/table.h"
#include "harness/site/verdict_view.h"
#include "harness/source/source_catalog.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using html::Element;
using html::Markup;
using html::Number;

Markup Links(const std::string& text, const std::string& address) {
  return address.empty() ? Markup(text) : Element("a", {{"href", address}}, text);
}

std::string PullAddress(const std::string& source, int64_t number) {
  const std::string commit = CommitAddress(source, "");
  if (commit.empty()) return "";
  return absl::StrCat(absl::StripSuffix(commit, "commit/"), "pull/", number);
}

// "baba6d82e, 2026-06-04: add Flex Attention", with a link where the source has one.
Markup CommitText(const NamedCommit& commit) {
  Markup text = {commit.source,
                 " ",
                 Links(commit.id.substr(0, 9), CommitAddress(commit.source, commit.id)),
                 ", ",
                 commit.date,
                 ": \u201c",
                 commit.title,
                 "\u201d"};
  if (const auto pull = commit.pull_request)
    text << " (" << Links(absl::StrCat("#", *pull), PullAddress(commit.source, *pull)) << ")";
  return text;
}

Markup VerdictText(const Verdict& verdict) {
  Markup text = {" ", VerdictBadge(verdict.kind)};
  if (verdict.kind != VerdictKind::kOk && !verdict.message.empty())
    text << Element("span", {{"class", "why"}},
                    absl::StrCat("at ", Name(verdict.stage), ": ", verdict.message));
  return text;
}

Markup MeasuredText(const MeasuredCommit& commit) {
  return {CommitText(commit), commit.outcome ? VerdictText(commit.outcome->verdict)
                                             : Markup({" ", VerdictBadge(std::nullopt)})};
}

std::string ShortCommit(const NamedCommit& commit) {
  return absl::StrCat(commit.id.substr(0, 9), " (", commit.date, ")");
}

std::string BisectResult(const BisectReport& report) {
  if (report.status != SearchStatus::kFound) {
    return absl::StrCat(
        report.status == SearchStatus::kAmbiguous  ? "One of several commits: "
        : report.status == SearchStatus::kUnstable ? "Unstable: "
                                                   : "No culprit: ",
        report.why.empty() ? "the commits in between could not be judged" : report.why);
  }
  const char* what = report.direction == Direction::kMended ? "mended it" : "broke it";
  switch (report.made_by.value_or(MadeBy::kCommit)) {
    case MadeBy::kRuntime:
      return absl::StrCat("Found: a change of the runtime ", what, ".");
    case MadeBy::kBoth:
      return absl::StrCat("Found: this commit and a change of the runtime together ", what, ".");
    case MadeBy::kEither:
      return absl::StrCat("Found: this commit, or a change of the runtime, alone ", what, ".");
    case MadeBy::kUndecided:
      return absl::StrCat("Found: this commit or a change of the runtime ", what,
                          "; which of them could not be judged.");
    case MadeBy::kCommit:
      break;
  }
  return absl::StrCat("Found: this commit ", what, ", and no change of the runtime.");
}

Markup BisectFacts(const BisectReport& report) {
  Markup facts;
  const auto add = [&](const char* name, const Markup& value) {
    facts << Element("dt", name) << Element("dd", value);
  };
  if (report.culprit) {
    add("Culprit", MeasuredText(*report.culprit));
  } else {
    for (const MeasuredCommit& commit : report.candidates) add("May be", CommitText(commit));
  }
  for (const MeasuredCommit& commit : report.parents) add("Before it", MeasuredText(commit));
  if (report.runtime) {
    for (const auto& [name, before, after] : report.runtime->changed)
      add("Package", absl::StrCat(name, " ", before, " to ", after));
  }
  const auto end = [](const std::optional<MeasuredCommit>& commit) {
    return commit ? MeasuredText(*commit) : Markup("none");
  };
  add("Older end", end(report.older_end));
  add("Newer end", end(report.newer_end));
  add("Bad means", report.bad_means);
  add("Searched", absl::StrFormat("%d commits with %d trials (%d measured now) in %.0f s",
                                  report.effort.commits, report.effort.probes,
                                  report.effort.measured, report.effort.seconds));
  return facts;
}

// Each stretch is as wide as its number of commits; good ones have full bars, bad ones half bars.
Markup TimelineStrip(const std::vector<ReportedStretch>& stretches) {
  double commits = 0;
  for (const ReportedStretch& stretch : stretches) commits += stretch.commits;
  Markup content;
  double at = 0;
  int number = 0;
  for (const ReportedStretch& stretch : stretches) {
    const double width = 900 * stretch.commits / std::max(1.0, commits);
    const std::string says = absl::StrCat(++number, ": ", stretch.signature, ", ",
                                          stretch.first.date, " to ", stretch.last.date);
    content << Element("rect",
                       {{"class", stretch.good() ? "strip-good" : "strip-bad"},
                        {"x", Number(at)},
                        {"y", stretch.good() ? "4" : "24"},
                        {"width", Number(std::max(2.0, width - 1))},
                        {"height", stretch.good() ? "40" : "20"}},
                       Element("title", says));
    if (width > 16)
      content << Element("text",
                         {{"x", Number(at + width / 2)}, {"y", "58"}, {"text-anchor", "middle"}},
                         absl::StrCat(number));
    at += width;
  }
  return Element("svg",
                 {{"class", "chart"},
                  {"viewBox", "0 0 900 62"},
                  {"role", "img"},
                  {"aria-label", "The stretches of this history; the table below says the same"}},
                 content);
}

Markup StretchRows(const std::vector<ReportedStretch>& stretches) {
  Markup rows;
  int number = 0;
  for (const ReportedStretch& stretch : stretches) {
    rows << Element(
        "tr", {Element("th", {{"scope", "row"}}, absl::StrCat(++number)),
               Element("td", VerdictText(stretch.verdict)),
               Element("td", CommitText(stretch.first)), Element("td", CommitText(stretch.last)),
               Element("td", {{"class", "number"}}, absl::StrCat(stretch.commits))});
  }
  return rows;
}

Markup BoundaryRows(const std::vector<ReportedBoundary>& boundaries) {
  Markup rows;
  for (const ReportedBoundary& boundary : boundaries) {
    rows << Element(
        "tr",
        {Element("th", {{"scope", "row"}}, Name(boundary.change)),
         Element("td", boundary.culprit ? CommitText(*boundary.culprit)
                                        : Markup(absl::StrCat("one of ", boundary.candidates.size(),
                                                              " commits"))),
         Element("td", boundary.same_runtime ? "the same" : "changed with the commit")});
  }
  return rows;
}

// "revert, up to 485bf78a1 (2026-04-03)": later commits build on the culprit.
std::string TakenOutText(const ReportedCulprit& culprit) {
  return absl::StrCat(
      culprit.taken_out_by ? Name(*culprit.taken_out_by) : "",
      culprit.taken_out_at ? absl::StrCat(", up to ", ShortCommit(*culprit.taken_out_at)) : "");
}

// The last outcome of the pair, and why peeling stopped.
std::string PeelEnd(const PeelReport& report) {
  if (report.why.empty()) return "Without these commits the pair works.";
  const bool moved = report.reached != report.newest && !report.reached.id.empty();
  return absl::StrCat(
      moved ? absl::StrCat("Without these commits the pair at ", ShortCommit(report.reached),
                           " is ", Name(report.last.verdict.kind), ". ")
            : "",
      "Stopped: ", report.why, ".");
}

Markup CulpritRows(const std::vector<ReportedCulprit>& culprits) {
  Markup rows;
  for (const ReportedCulprit& culprit : culprits) {
    std::string says = culprit.failure ? culprit.failure->verdict.message : "";
    for (const Violation& broken : culprit.breaks)
      absl::StrAppend(&says, says.empty() ? "" : "; ", broken.asked, " ", broken.problem);
    rows << Element(
        "tr", {Element("td", culprit.commit ? CommitText(*culprit.commit) : Markup(culprit.why)),
               Element("td", culprit.confirmed()),
               Element("td", Element("span", {{"class", "why"}}, says)),
               Element("td", TakenOutText(culprit))});
  }
  return rows;
}

// The section of one log: a call with its report writes it.
class LogSection {
 public:
  LogSection(const HistoryLog& log, size_t number, const SiteRuns& runs)
      : log_(log), number_(number), runs_(runs) {}

  Markup operator()(const BisectReport& report) const {
    return Section(absl::StrCat("Bisection along the ", Name(report.axis)), report.cell,
                   {Element("p", Element("strong", BisectResult(report))),
                    Element("dl", {{"class", "facts"}}, BisectFacts(report)), Trials(report.axis)});
  }

  Markup operator()(const TimelineReport& report) const {
    Markup content = {
        Element("p", absl::StrFormat(
                         "%d commits, %d trials. A change that lasts at most %d commits can be "
                         "missed between equal measured commits.",
                         report.effort.commits, report.effort.probes, report.resolution)),
        Element("figure", {{"tabindex", "0"}},
                {TimelineStrip(report.stretches),
                 Element("figcaption",
                         "Oldest first. A full bar works, a half bar does not; the numbers refer "
                         "to the table.")}),
        Table("Stretches of commits with the same result, oldest first.",
              {"stretch", "verdict", "first", "last", "commits"}, StretchRows(report.stretches))};
    if (!report.boundaries.empty())
      content << Table("The changes between the stretches.", {"change", "commit", "runtime"},
                       BoundaryRows(report.boundaries));
    content << Trials(report.axis);
    return Section(absl::StrCat("Timeline along the ", Name(report.axis)), report.cell, content);
  }

  Markup operator()(const PeelReport& report) const {
    return Section(
        "Stacked culprits", report.cell,
        {Element("p", PeelEnd(report)),
         Table("All culprits, in the order in which the pair runs into them.",
               {"commit", "confirmed", "symptom", "removed by"}, CulpritRows(report.culprits)),
         Trials(AxisKind::kLibrary)});
  }

 private:
  Markup Section(const std::string& kind, const std::string& cell, const Markup& content) const {
    return Element(
        "section", {{"class", "card"}, {"aria-label", absl::StrCat("Log ", number_)}},
        {Element("p", {{"class", "eyebrow"}}, kind),
         Element("h2", {{"id", absl::StrCat("log-", number_)}}, CellName(cell)), content});
  }

  // The title of the searched cell; its id if its run is missing.
  std::string CellName(const std::string& id) const {
    if (log_.run) {
      for (const CellRecord& cell : log_.run->cells) {
        if (cell.id == id) return CellTitle(cell);
      }
    }
    return id;
  }

  // Its label tells the tables of several logs apart.
  Markup Table(const std::string& caption, const std::vector<Column>& columns,
               const Markup& rows) const {
    return CaptionedTable(caption, columns, rows, absl::StrCat(caption, " Log ", number_, "."));
  }

  // The trials in the order in which the run holds them.
  Markup Trials(AxisKind axis) const {
    if (!log_.run || log_.run->cells.empty()) return {};
    Markup rows;
    for (const CellRecord& cell : log_.run->cells) {
      const bool of_engine = axis == AxisKind::kEngine && cell.cell.engine_subject;
      const std::string version =
          of_engine
              ? VersionText(cell.cell.engine_label, cell.cell.engine_subject, cell.engine_date)
              : LibraryText(cell);
      const auto kind = cell.verdict ? std::optional(cell.verdict->kind) : std::nullopt;
      rows << Element("tr", {Element("th", {{"scope", "row"}}, version),
                             Element("td", {VerdictBadge(kind, runs_.PageOfId(cell.id)),
                                            Element("span", {{"class", "why"}},
                                                    cell.verdict ? WhyText(*cell.verdict) : "")}),
                             Element("td", {{"class", "number"}},
                                     absl::StrFormat("%.1f s", cell.cost.seconds))});
    }
    return Element("details",
                   {Element("summary", absl::StrCat("Log: ", log_.run->cells.size(), " cells ran")),
                    Table("The commits that were tried.", {"version", "verdict", "time"}, rows)});
  }

  const HistoryLog& log_;
  const size_t number_;
  const SiteRuns& runs_;
};

using AnyReport = std::variant<BisectReport, TimelineReport, PeelReport>;

// Each kind of report has one key that the others lack.
absl::StatusOr<AnyReport> ReadReport(const fs::path& file) {
  ASSIGN_OR_RETURN(const Json json, ReadJsonFile(file));
  if (json.is_object() && json.value("schema", Json()) == Json(1)) {
    if (json.contains("bad_means")) return BisectReportFromJson(json, file.string());
    if (json.contains("stretches")) return TimelineReportFromJson(json, file.string());
    if (json.contains("culprits")) return PeelReportFromJson(json, file.string());
  }
  return absl::InvalidArgumentError(absl::StrCat(
      file.string(), ": is not a bisect.json, timeline.json or peel.json of schema 1"));
}

}  // namespace

std::string CommitAddress(const std::string& source, const std::string& commit) {
  static const auto& catalog = *new SourceCatalog();
  const Source* found = catalog.Find(source);
  if (!found || !absl::StartsWith(found->git, "https://github.com/")) return "";
  return absl::StrCat(absl::StripSuffix(absl::StripSuffix(found->git, "/"), ".git"), "/commit/",
                      commit);
}

absl::StatusOr<HistoryLog> ReadHistoryLog(const fs::path& path) {
  fs::path file = path;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    for (const char* name : {"bisect.json", "timeline.json", "peel.json"}) {
      if (fs::exists(path / name, error)) file = path / name;
    }
    if (file == path) {
      return absl::NotFoundError(
          absl::StrCat(path.string(),
                       ": holds no bisect.json, timeline.json or peel.json (bkm "
                       "bisect and bkm timeline write them into their run directory)"));
    }
  }
  HistoryLog log;
  ASSIGN_OR_RETURN(log.report, ReadReport(file));
  const absl::StatusOr<RunRecord> run = RunDirectory(file.parent_path()).ReadRun();
  if (run.ok()) log.run = *run;
  return log;
}

Page HistoryPage(const std::vector<HistoryLog>& logs, const SiteRuns& runs) {
  Page page;
  page.path = "history.html";
  page.title = "Which commit changed it";
  page.main << Element("h1", page.title)
            << Element("p", {{"class", "lead"}},
                       "Found by running cells at commits and confirmed by running both sides "
                       "again, not by reading the commits.");
  for (size_t i = 0; i < logs.size(); ++i)
    page.main << std::visit(LogSection(logs[i], i + 1, runs), logs[i].report);
  return page;
}

}  // namespace bkm
