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
#include "harness/site/evidence_view.h"
#include "harness/site/map_picture.h"
#include "harness/site/verdict_view.h"
#include "harness/source/source_catalog.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using html::Element;
using html::Markup;
using html::Number;

Json Child(const Json& json, const char* key) {
  return json.is_object() && json.contains(key) ? json[key] : Json();
}

Markup Links(const std::string& text, const std::string& address) {
  return address.empty() ? Markup(text) : Element("a", {{"href", address}}, text);
}

std::string PullAddress(const std::string& source, double number) {
  const std::string commit = CommitAddress(source, "");
  if (commit.empty()) return "";
  return absl::StrCat(absl::StripSuffix(commit, "commit/"), absl::StrFormat("pull/%.0f", number));
}

// "baba6d82e, 2026-06-04: add Flex Attention", with a link where the source has one.
Markup CommitText(const Json& commit) {
  if (!commit.is_object()) return "none";
  const std::string source = StringOf(commit, "source");
  const std::string hash = StringOf(commit, "commit");
  Markup text = {source,
                 " ",
                 Links(hash.substr(0, 9), hash.empty() ? "" : CommitAddress(source, hash)),
                 ", ",
                 StringOf(commit, "date"),
                 ": \u201c",
                 StringOf(commit, "title"),
                 "\u201d"};
  if (const auto pull = NumberOf(commit, "pull_request"))
    text << " (" << Links(absl::StrFormat("#%.0f", *pull), PullAddress(source, *pull)) << ")";
  return text;
}

Markup VerdictOf(const Json& commit) {
  const auto kind = VerdictKindFromName(StringOf(commit, "verdict"));
  Markup text = {" ", VerdictBadge(kind)};
  const std::string message = StringOf(commit, "message");
  if (kind && *kind != VerdictKind::kOk && !message.empty())
    text << Element("span", {{"class", "why"}},
                    absl::StrCat("at ", StringOf(commit, "stage"), ": ", message));
  return text;
}

Markup Head(const std::vector<const char*>& columns) {
  Markup cells;
  for (const char* column : columns) cells << Element("th", {{"scope", "col"}}, column);
  return Element("thead", Element("tr", cells));
}

Markup Table(const std::string& caption, const Markup& head, const Markup& rows,
             const std::string& of = "") {
  return ScrollBox(absl::StrCat(caption, of),
                   Element("table", {Element("caption", caption), head, Element("tbody", rows)}));
}

// Tells apart the tables of several logs, for those who do not see where they stand.
std::string OfLog(size_t number) { return absl::StrCat(" Log ", number, "."); }

// What was searched: the cell as people call it where its run is there, else its id.
std::string CellName(const HistoryLog& log) {
  const std::string id = StringOf(log.json, "cell");
  if (log.run) {
    for (const CellRecord& cell : log.run->cells) {
      if (cell.id == id) return CellTitle(cell);
    }
  }
  return id;
}

// The trials in the order in which the run holds them.
Markup Trials(const HistoryLog& log, size_t number, const SiteRuns& runs) {
  if (!log.run || log.run->cells.empty()) return {};
  Markup rows;
  const std::string axis = StringOf(log.json, "axis");
  for (const CellRecord& cell : log.run->cells) {
    const bool of_engine = axis == "engine" && cell.cell.engine_subject;
    const std::string version =
        of_engine ? VersionText(cell.cell.engine_label, cell.cell.engine_subject, cell.engine_date)
                  : LibraryText(cell);
    const auto kind = cell.verdict ? std::optional(cell.verdict->kind) : std::nullopt;
    rows << Element(
        "tr", {Element("th", {{"scope", "row"}}, version),
               Element("td", {VerdictBadge(kind, runs.PageOfId(cell.id)),
                              Element("span", {{"class", "why"}},
                                      cell.verdict ? WhyText(*cell.verdict) : "")}),
               Element("td", {{"class", "number"}}, absl::StrFormat("%.1f s", cell.seconds))});
  }
  return Element(
      "details",
      {Element("summary", absl::StrCat("The log: ", log.run->cells.size(), " cells that were run")),
       Table("The commits that were tried.", Head({"version", "verdict", "time"}), rows,
             OfLog(number))});
}

std::string BisectResult(const Json& json) {
  const std::string status = StringOf(json, "status");
  const std::string direction = StringOf(json, "direction");
  if (status == "found") {
    const std::string made_by = StringOf(json, "made_by");
    const std::string what = direction == "mended" ? "mended it" : "broke it";
    if (made_by == "runtime") return absl::StrCat("Found: a change of the runtime ", what, ".");
    if (made_by == "both")
      return absl::StrCat("Found: this commit and a change of the runtime together ", what, ".");
    if (made_by == "either")
      return absl::StrCat("Found: this commit, or a change of the runtime, alone ", what, ".");
    return absl::StrCat("Found: this commit ", what, ", and no change of the runtime.");
  }
  const std::string why = StringOf(json, "why");
  return absl::StrCat(status == "ambiguous"  ? "One of several commits: "
                      : status == "unstable" ? "It is good and bad in turn: "
                                             : "No culprit: ",
                      why.empty() ? "those between could not be judged" : why);
}

Markup BisectSection(const HistoryLog& log, size_t number, const SiteRuns& runs) {
  const Json& json = log.json;
  Markup facts;
  const auto add = [&](const char* name, const Markup& value) {
    facts << Element("dt", name) << Element("dd", value);
  };
  const Json culprit = Child(json, "culprit");
  if (culprit.is_object()) add("Culprit", {CommitText(culprit), VerdictOf(culprit)});
  if (!culprit.is_object()) {
    for (const Json& commit : Child(json, "candidates")) add("May be", CommitText(commit));
  }
  for (const Json& commit : Child(json, "parents"))
    add("Before it", {CommitText(commit), VerdictOf(commit)});
  for (const Json& change : Child(Child(json, "runtime"), "changed")) {
    add("Package", absl::StrCat(StringOf(change, "package"), " ", StringOf(change, "before"),
                                " to ", StringOf(change, "after")));
  }
  add("Older end", {CommitText(Child(json, "older_end")), VerdictOf(Child(json, "older_end"))});
  add("Newer end", {CommitText(Child(json, "newer_end")), VerdictOf(Child(json, "newer_end"))});
  add("Bad means", StringOf(json, "bad_means"));
  add("Searched",
      absl::StrFormat("%.0f commits with %.0f outcomes, %.0f of them measured now, in "
                      "%.0f s",
                      NumberOf(json, "commits").value_or(0), NumberOf(json, "probes").value_or(0),
                      NumberOf(json, "measured").value_or(0),
                      NumberOf(json, "seconds").value_or(0)));
  const std::string id = absl::StrCat("log-", number);
  return Element("section", {{"class", "card"}, {"aria-label", absl::StrCat("Log ", number)}},
                 {Element("p", {{"class", "eyebrow"}},
                          absl::StrCat("Bisection along the ", StringOf(json, "axis"))),
                  Element("h2", {{"id", id}}, CellName(log)),
                  Element("p", Element("strong", BisectResult(json))),
                  Element("dl", {{"class", "facts"}}, facts), Trials(log, number, runs)});
}

// A stretch is as wide as its commits are many; a good one has a whole bar, a bad one a half one.
Markup TimelineStrip(const Json& stretches) {
  double commits = 0;
  for (const Json& stretch : stretches) commits += NumberOf(stretch, "commits").value_or(1);
  Markup content;
  double at = 0;
  int number = 0;
  for (const Json& stretch : stretches) {
    const double width = 900 * NumberOf(stretch, "commits").value_or(1) / std::max(1.0, commits);
    const bool good = StringOf(stretch, "state") == "good";
    const std::string says = absl::StrCat(++number, ": ", StringOf(stretch, "signature"), ", ",
                                          StringOf(Child(stretch, "first"), "date"), " to ",
                                          StringOf(Child(stretch, "last"), "date"));
    content << Element("rect",
                       {{"class", good ? "strip-good" : "strip-bad"},
                        {"x", Number(at)},
                        {"y", good ? "4" : "24"},
                        {"width", Number(std::max(2.0, width - 1))},
                        {"height", good ? "40" : "20"}},
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

Markup TimelineSection(const HistoryLog& log, size_t number, const SiteRuns& runs) {
  const Json stretches = Child(log.json, "stretches");
  const Json boundaries = Child(log.json, "boundaries");
  Markup rows, changes;
  int index = 0;
  for (const Json& stretch : stretches) {
    rows << Element(
        "tr",
        {Element("th", {{"scope", "row"}}, absl::StrCat(++index)),
         Element("td", VerdictOf(stretch)), Element("td", CommitText(Child(stretch, "first"))),
         Element("td", CommitText(Child(stretch, "last"))),
         Element("td", {{"class", "number"}},
                 absl::StrFormat("%.0f", NumberOf(stretch, "commits").value_or(0)))});
  }
  for (const Json& boundary : boundaries) {
    const Json culprit = Child(boundary, "culprit");
    changes << Element(
        "tr",
        {Element("th", {{"scope", "row"}}, StringOf(boundary, "change")),
         Element("td", culprit.is_object()
                           ? CommitText(culprit)
                           : Markup(absl::StrCat("one of ", Child(boundary, "candidates").size(),
                                                 " commits"))),
         Element("td", Child(boundary, "same_runtime") == Json(false) ? "changed with the commit"
                                                                      : "the same")});
  }
  const std::string id = absl::StrCat("log-", number);
  Markup section = {
      Element("p", {{"class", "eyebrow"}},
              absl::StrCat("Timeline along the ", StringOf(log.json, "axis"))),
      Element("h2", {{"id", id}}, CellName(log)),
      Element("p", absl::StrFormat("%.0f commits, %.0f outcomes. Between measured commits that are "
                                   "alike, a stretch of at most %.0f commits can hide.",
                                   NumberOf(log.json, "commits").value_or(0),
                                   NumberOf(log.json, "probes").value_or(0),
                                   NumberOf(log.json, "resolution").value_or(0))),
      Element(
          "figure", {{"tabindex", "0"}},
          {TimelineStrip(stretches), Element("figcaption",
                                             "Oldest to the left. A whole bar works, a half one "
                                             "does not; the numbers are those of the table.")}),
      Table("Stretches of commits that came to the same, oldest first.",
            Head({"stretch", "verdict", "first", "last", "commits"}), rows, OfLog(number))};
  if (!changes.empty())
    section << Table("The changes between them.", Head({"change", "commit", "runtime"}), changes,
                     OfLog(number));
  return Element("section", {{"class", "card"}, {"aria-label", absl::StrCat("Log ", number)}},
                 {section, Trials(log, number, runs)});
}

std::string ShortCommit(const Json& commit) {
  return absl::StrCat(StringOf(commit, "commit").substr(0, 9), " (", StringOf(commit, "date"), ")");
}

// "revert, up to 485bf78a1 (2026-04-03)": later commits build on it.
std::string TakenOutText(const Json& culprit) {
  const Json at = Child(culprit, "taken_out_at");
  return absl::StrCat(StringOf(culprit, "taken_out_by"),
                      at.is_object() ? ", up to " + ShortCommit(at) : "");
}

// What the pair came to, and why it was not peeled further.
std::string PeelEnd(const Json& peel) {
  const std::string why = StringOf(peel, "why");
  if (why.empty()) return "Without these commits the pair works.";
  const Json reached = Child(peel, "reached");
  const bool is_newest = reached == Child(peel, "newest");
  return absl::StrCat(
      is_newest || !reached.is_object()
          ? ""
          : absl::StrCat("Without those taken out the pair at ", ShortCommit(reached), " is ",
                         StringOf(Child(peel, "last"), "verdict"), ". "),
      "It does not go on: ", why, ".");
}

// Everything that is broken in one pair, in the order in which the pair meets it.
Markup PeelSection(const HistoryLog& log, size_t number, const SiteRuns& runs) {
  Markup rows;
  for (const Json& culprit : Child(log.json, "culprits")) {
    std::string says = StringOf(Child(culprit, "failure"), "message");
    for (const Json& broken : Child(culprit, "breaks")) {
      absl::StrAppend(&says, says.empty() ? "" : "; ", StringOf(broken, "asked"), " ",
                      StringOf(broken, "problem"));
    }
    const Json commit = Child(culprit, "commit");
    rows << Element("tr", {Element("td", commit.is_object() ? CommitText(commit)
                                                            : Markup(StringOf(culprit, "why"))),
                           Element("td", StringOf(culprit, "confirmed")),
                           Element("td", Element("span", {{"class", "why"}}, says)),
                           Element("td", TakenOutText(culprit))});
  }
  const std::string id = absl::StrCat("log-", number);
  return Element(
      "section", {{"class", "card"}, {"aria-label", absl::StrCat("Log ", number)}},
      {Element("p", {{"class", "eyebrow"}}, "Stacked culprits"),
       Element("h2", {{"id", id}}, CellName(log)), Element("p", PeelEnd(log.json)),
       Table("What is broken, in the order in which the pair meets it.",
             Head({"commit", "confirmed", "how it shows", "taken out by"}), rows, OfLog(number)),
       Trials(log, number, runs)});
}

std::string MapLabel(const MapCommit& commit) {
  return absl::StrCat(commit.release.empty() ? commit.commit.substr(0, 9) : commit.release, " (",
                      commit.date, ")");
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
  ASSIGN_OR_RETURN(log.json, ReadJsonFile(file));
  const bool is_bisect = Child(log.json, "bad_means").is_string();
  const bool is_timeline = Child(log.json, "stretches").is_array();
  const bool is_peel = Child(log.json, "culprits").is_array();
  if (Child(log.json, "schema") != Json(1) || is_bisect + is_timeline + is_peel != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.string(), ": is no bisect.json, timeline.json or peel.json of schema 1"));
  }
  log.kind = is_bisect     ? HistoryLog::Kind::kBisect
             : is_timeline ? HistoryLog::Kind::kTimeline
                           : HistoryLog::Kind::kPeel;
  const absl::StatusOr<RunRecord> run = RunDirectory(file.parent_path()).ReadRun();
  if (run.ok()) log.run = *run;
  return log;
}

Page HistoryPage(const std::vector<HistoryLog>& logs, const SiteRuns& runs) {
  Page page;
  page.path = "history.html";
  page.title = "Which commit it was";
  page.main << Element("h1", page.title)
            << Element("p", {{"class", "lead"}},
                       "Found by running cells at commits and confirmed by running both sides "
                       "again, not by reading the commits.");
  for (size_t i = 0; i < logs.size(); ++i) {
    const auto section = logs[i].kind == HistoryLog::Kind::kBisect     ? BisectSection
                         : logs[i].kind == HistoryLog::Kind::kTimeline ? TimelineSection
                                                                       : PeelSection;
    page.main << section(logs[i], i + 1, runs);
  }
  return page;
}

Page MapPage(const ApiMap& map) {
  Page page;
  page.path = "map.html";
  page.title = absl::StrCat("Which commits of ", map.engine_source, " and ", map.library_source,
                            " work together");
  Markup rows;
  for (const WorkingBlock& block : map.Working()) {
    rows << Element("tr",
                    {Element("th", {{"scope", "row"}},
                             absl::StrCat(MapLabel(map.engines[block.first_row]), " to ",
                                          MapLabel(map.engines[block.last_row]))),
                     Element("td", absl::StrCat(MapLabel(map.libraries[block.first_column]), " to ",
                                                MapLabel(map.libraries[block.last_column]))),
                     Element("td", {{"class", "number"}},
                             absl::StrCat(block.last_column - block.first_column + 1))});
  }
  page.main << Element("h1", page.title)
            << Element("p", {{"class", "lead"}},
                       absl::StrCat(map.engines.size(), " commits of ", map.engine_source, " and ",
                                    map.libraries.size(), " of ", map.library_source, " since ",
                                    map.since, ", ", map.attention, " attention, ", map.model,
                                    ". Every pair was checked by its sources; ", map.cells.size(),
                                    " pairs ran, where that decides a boundary."));
  if (!map.finished)
    page.main << Element("p", "Not every boundary is decided yet: the same command goes on.");
  if (rows.empty()) {
    page.main << Element("p", "No pair is known to work yet.");
  } else {
    page.main << Table(
        "What works: both ends of a range ran, with the newest engine of its row and "
        "with the oldest.",
        Head({"engine commits", "library commits", "of them"}), rows);
  }
  page.main << ScrollBox("The map", html::Markup::FromOwnMarkup(ToSvg(map, SvgUse::kInPage)))
            << Element("p", {{"class", "soft small"}},
                       "A row per engine commit, a column per library commit. Dots are pairs that "
                       "ran and work, crosses are pairs that ran and fail.");
  return page;
}

}  // namespace bkm
