// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// A RunDiff as JSON, as text for a terminal, and as Markdown.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "harness/publish/escape.h"
#include "harness/publish/rows.h"
#include "harness/publish/run_diff.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

constexpr size_t kCellsShown = 6;
constexpr size_t kCommitsShown = 20;
constexpr size_t kPackagesShown = 12;
constexpr char kHarnessChanged[] =
    "The harness code in the cells differs between the runs and may have caused changes.\n";

OrderedJson ToJson(const PublishedVersion& version) {
  return {{"subject", version.subject}, {"label", version.label}, {"date", version.date}};
}

OrderedJson ToJson(const CellRecord* cell) {
  if (!cell) return nullptr;
  OrderedJson json = {{"id", cell->id},  {"verdict", nullptr},        {"stage", ""},
                      {"reason", ""},    {"flaky", cell->is_flaky()}, {"lock", cell->lock},
                      {"dir", cell->dir}};
  if (cell->verdict) {
    json["verdict"] = std::string(Name(cell->verdict->kind));
    json["stage"] = std::string(Name(cell->verdict->stage));
    json["reason"] = cell->verdict->reason;
  }
  return json;
}

OrderedJson ToJson(const SubjectMove& move) {
  OrderedJson commits = OrderedJson::array();
  for (const HistoryCommit& commit : move.commits) {
    commits.push_back({{"commit", commit.id}, {"date", commit.date}, {"title", commit.title}});
    commits.back()["pull_request"] =
        commit.pull_request ? OrderedJson(commit.pull_request) : OrderedJson();
  }
  return {{"source", move.source}, {"from", ToJson(move.from)}, {"to", ToJson(move.to)},
          {"back", move.back},     {"commits", commits},        {"trouble", move.trouble}};
}

OrderedJson ToJson(const CauseGroup& group) {
  OrderedJson cells = OrderedJson::array(), moves = OrderedJson::array(),
              packages = OrderedJson::array();
  for (const CellPair& pair : group.cells) {
    cells.push_back(
        {{"asked", pair.asked}, {"before", ToJson(pair.before)}, {"after", ToJson(pair.after)}});
  }
  for (const SubjectMove& move : group.moves) moves.push_back(ToJson(move));
  for (const PackageMove& move : group.packages)
    packages.push_back({{"name", move.name}, {"from", move.from}, {"to", move.to}});
  return {{"change", std::string(Name(group.change))},
          {"verdict", std::string(Name(group.verdict.kind))},
          {"stage", std::string(Name(group.verdict.stage))},
          {"reason", group.verdict.reason},
          {"message", group.verdict.message},
          {"blame", group.verdict.blame},
          {"flaky", group.flaky},
          {"cells", cells},
          {"claims_fixed", group.claims_fixed},
          {"claims_new", group.claims_new},
          {"moves", moves},
          {"packages", packages}};
}

std::string CountsText(const RunDiff& diff) {
  std::vector<std::string> parts;
  for (const auto& [change, count] : diff.counts)
    parts.push_back(absl::StrCat(count, " ", Name(change)));
  return parts.empty() ? "no cells" : absl::StrJoin(parts, ", ");
}

std::string CauseText(const CauseGroup& group) {
  if (group.verdict.kind == VerdictKind::kOk && !group.flaky) return "ok";
  std::string text = absl::StrCat(group.flaky ? "flaky: " : "", ShortText(group.verdict), ": ",
                                  MessageWithoutPlace(group.verdict.message));
  if (!group.claims_fixed.empty())
    absl::StrAppend(&text, "; no longer fails: ", absl::StrJoin(group.claims_fixed, ", "));
  if (!group.claims_new.empty())
    absl::StrAppend(&text, "; fails now: ", absl::StrJoin(group.claims_new, ", "));
  return text;
}

std::string HeadOf(const CauseGroup& group) {
  return absl::StrCat(Name(group.change), group.change == CellChange::kFixed ? ", was " : ": ",
                      CauseText(group));
}

std::string PairText(const CellPair& pair) {
  const CellRecord& cell = pair.after ? *pair.after : *pair.before;
  if (!pair.before || !pair.after) return CellLabel(cell);
  return absl::StrCat(CellLabel(cell), " (", OutcomeText(*pair.before), " -> ",
                      OutcomeText(*pair.after), ")");
}

std::string MoveText(const SubjectMove& move) {
  std::string text =
      absl::StrCat(move.source, " ", VersionText(move.from), " -> ", VersionText(move.to));
  if (!move.trouble.empty()) return absl::StrCat(text, ": commits unknown: ", move.trouble);
  if (!move.commits.empty())
    absl::StrAppend(&text, ", ", move.commits.size(),
                    move.commits.size() == 1 ? " commit" : " commits", move.back ? " back" : "");
  return text;
}

std::string PackagesText(const std::vector<PackageMove>& moves) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < std::min(kPackagesShown, moves.size()); ++i) {
    const PackageMove& move = moves[i];
    parts.push_back(absl::StrCat(move.name, " ", move.from.empty() ? "-" : move.from, " -> ",
                                 move.to.empty() ? "-" : move.to));
  }
  if (moves.size() > kPackagesShown)
    parts.push_back(absl::StrCat("and ", moves.size() - kPackagesShown, " more"));
  return absl::StrJoin(parts, ", ");
}

// The newest commits first.
std::vector<std::string> CommitLines(const SubjectMove& move) {
  std::vector<std::string> lines;
  const size_t shown = std::min(kCommitsShown, move.commits.size());
  for (size_t i = 0; i < shown; ++i) {
    const HistoryCommit& commit = move.commits[move.commits.size() - 1 - i];
    lines.push_back(absl::StrCat(commit.id.substr(0, 9), " ", commit.date, " ", commit.title));
  }
  if (move.commits.size() > shown)
    lines.push_back(absl::StrCat("and ", move.commits.size() - shown, " older"));
  return lines;
}

}  // namespace

OrderedJson ToJson(const RunDiff& diff) {
  OrderedJson counts = OrderedJson::object(), groups = OrderedJson::array();
  for (const CellChange change :
       {CellChange::kRegressed, CellChange::kFixed, CellChange::kChangedReason, CellChange::kNew,
        CellChange::kGone, CellChange::kSpurious, CellChange::kSame}) {
    const auto it = diff.counts.find(change);
    counts[std::string(Name(change))] = it == diff.counts.end() ? 0 : it->second;
  }
  for (const CauseGroup& group : diff.groups) groups.push_back(ToJson(group));
  return {{"schema", 1},
          {"before", {{"run", diff.before.dir}, {"matrix", diff.before.matrix}}},
          {"after", {{"run", diff.after.dir}, {"matrix", diff.after.matrix}}},
          {"harness_changed", diff.harness_changed()},
          {"counts", counts},
          {"groups", groups},
          {"speed", ToJson(diff.speed)}};
}

std::string DiffText(const RunDiff& diff) {
  std::string out = absl::StrCat(diff.before.dir, " -> ", diff.after.dir, ": ", CountsText(diff),
                                 "\n", diff.harness_changed() ? kHarnessChanged : "");
  for (const CauseGroup& group : diff.groups) {
    absl::StrAppend(&out, "\n", HeadOf(group), "\n");
    for (size_t i = 0; i < std::min(kCellsShown, group.cells.size()); ++i)
      absl::StrAppend(&out, "  ", PairText(group.cells[i]), "\n");
    if (group.cells.size() > kCellsShown)
      absl::StrAppend(&out, "  and ", group.cells.size() - kCellsShown, " more\n");
    for (const SubjectMove& move : group.moves) {
      absl::StrAppend(&out, "  moved: ", MoveText(move), "\n");
      for (const std::string& line : CommitLines(move)) absl::StrAppend(&out, "    ", line, "\n");
    }
    if (!group.packages.empty())
      absl::StrAppend(&out, "  runtime: ", PackagesText(group.packages), "\n");
  }
  const std::vector<std::string> speed = SpeedLines(diff.speed);
  if (!speed.empty()) absl::StrAppend(&out, "\n", absl::StrJoin(speed, "\n"), "\n");
  return Printable(std::move(out));
}

std::string DiffMarkdown(const RunDiff& diff) {
  std::string out = absl::StrCat("## ", MarkdownText(diff.before.dir), " → ",
                                 MarkdownText(diff.after.dir), ": ", CountsText(diff), "\n");
  if (diff.harness_changed()) absl::StrAppend(&out, "\n", kHarnessChanged);
  for (const CauseGroup& group : diff.groups) {
    absl::StrAppend(&out, "\n### ", MarkdownText(HeadOf(group)), "\n\n");
    for (size_t i = 0; i < std::min(kCellsShown, group.cells.size()); ++i)
      absl::StrAppend(&out, "- ", MarkdownText(PairText(group.cells[i])), "\n");
    if (group.cells.size() > kCellsShown)
      absl::StrAppend(&out, "- and ", group.cells.size() - kCellsShown, " more\n");
    for (const SubjectMove& move : group.moves) {
      absl::StrAppend(&out, "\nMoved: ", MarkdownText(MoveText(move)), "\n\n");
      for (const std::string& line : CommitLines(move))
        absl::StrAppend(&out, "- ", MarkdownText(line), "\n");
    }
    if (!group.packages.empty())
      absl::StrAppend(&out, "\nRuntime: ", MarkdownText(PackagesText(group.packages)), "\n");
  }
  for (const std::string& line : SpeedLines(diff.speed))
    absl::StrAppend(&out, "\n", MarkdownText(std::string(absl::StripLeadingAsciiWhitespace(line))),
                    "\n");
  return out;
}

}  // namespace bkm
