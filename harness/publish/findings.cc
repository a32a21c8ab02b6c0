// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/findings.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "harness/base/shown_text.h"
#include "harness/model/cell.h"
#include "harness/model/dimension.h"
#include "harness/model/engine_kind.h"
#include "harness/publish/answer.h"
#include "harness/publish/layouts.h"
#include "harness/publish/markdown_lines.h"
#include "harness/publish/rows.h"
#include "harness/report/command_text.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

// The cell as it was asked. The subjects of a table are exact.
Cell CellOf(const PublishedRow& row, const PublishedCell& cell) {
  Cell asked{.engine = row.engine,
             .runtime = row.runtime,
             .torch = row.torch,
             .relax = row.relax,
             .probe = cell.probe};
  if (const auto engine = ParseSubjectSpec(row.engine_version.subject); engine.ok())
    asked.engine_subject = *engine;
  if (const auto library = ParseSubjectSpec(cell.library); library.ok())
    asked.library_subject = *library;
  return asked;
}

// The rows that are right, by what was asked of which kind on which device.
using RightRows = std::map<std::string, std::vector<const PublishedRow*>>;
std::string AskedOf(const PublishedRow& row, const PublishedCell& cell) {
  return absl::StrCat(row.engine, "\n", row.device, "\n", ToJson(cell.probe).dump());
}
RightRows RightRowsOf(const PublishedTable& table) {
  RightRows right;
  for (const PublishedRow& row : table.rows) {
    for (const PublishedCell* cell : CellsByProbe(row)) {
      if (IsOk(*cell)) right[AskedOf(row, *cell)].push_back(&row);
    }
  }
  return right;
}

bool IsLater(const PublishedVersion& a, const PublishedVersion& b) {
  return !a.date.empty() && !b.date.empty() && a.date > b.date;
}

// The version of `right` that makes the difference to `red`, if it is later and the other side is
// the same.
std::string FixedBy(const PublishedRow& red, const PublishedRow& right) {
  const EngineKind* kind = FindEngineKind(red.engine);
  if (right.engine_version.subject == red.engine_version.subject &&
      IsLater(right.library_to, red.library_to))
    return absl::StrCat(red.library, " ", ShortLabel(right.library_to));
  if (kind != nullptr && right.library_to.subject == red.library_to.subject &&
      IsLater(right.engine_version, red.engine_version))
    return absl::StrCat(kind->engine_source, " ", ShortLabel(right.engine_version));
  return "";
}

void AddRight(const RightRows& right, PublishedFinding& finding) {
  const auto rows = right.find(AskedOf(*finding.row, *finding.fault.cell));
  if (rows == right.end()) return;
  for (const PublishedRow* row : rows->second) {
    finding.right.push_back(PairLabel(*row));
    if (const std::string fixed = FixedBy(*finding.row, *row); !fixed.empty())
      finding.fixed = fixed;
  }
}

// What an id asks for beside versions: "model=qwen3,attention=flex,...".
std::string QuestionOf(absl::string_view id) {
  std::vector<absl::string_view> asked;
  for (const absl::string_view part : absl::StrSplit(id, ',')) {
    const absl::string_view key = part.substr(0, part.find('='));
    const Dimension* dimension = FindDimension(key);
    if (dimension != nullptr && dimension->field != nullptr) asked.push_back(part);
  }
  return absl::StrJoin(asked, ",");
}

std::string FoundText(const BisectReport& search) {
  const std::string what = search.direction == Direction::kMended ? "mended by " : "made by ";
  if (search.culprit) return absl::StrCat(what, MarkdownText(ToText(*search.culprit)));
  if (search.status == SearchStatus::kFound) return absl::StrCat(what, "the runtime alone");
  return absl::StrCat("searched, no commit is named: ", MarkdownText(search.why));
}

std::string SearchesText(const std::vector<BisectReport>& searches,
                         const PublishedFinding& finding) {
  std::set<std::string> found;
  for (const BisectReport& search : searches) {
    if (IsOf(search, finding)) found.insert(FoundText(search));
  }
  return found.empty() ? "not bisected" : absl::StrJoin(found, "; ");
}

// How many pairs are named before "and 3 more".
constexpr size_t kMostPairs = 8;
std::string PairsText(const std::vector<std::string>& pairs) {
  const size_t shown = std::min(pairs.size(), kMostPairs);
  std::string text = absl::StrJoin(pairs.begin(), pairs.begin() + shown, "; ");
  if (pairs.size() > shown) absl::StrAppend(&text, "; and ", pairs.size() - shown, " more");
  return MarkdownText(text);
}

std::string Section(const PublishedFinding& finding, const std::vector<BisectReport>& searches) {
  const PublishedCell& cell = *finding.fault.cell;
  const Verdict& verdict = cell.evidence.verdict;
  std::string out = absl::StrCat(
      "### ", finding.row->engine, ": ",
      verdict.reason.empty() ? MarkdownText(CellText(cell)) : MarkdownText(verdict.reason), ", ",
      MarkdownText(ConditionText(finding.fault.condition)), "\n\n");
  const auto line = [&](absl::string_view name, const std::string& text) {
    if (!text.empty()) out += WrappedMarkdown("- ", absl::StrCat(name, ": ", text));
  };
  line("with", PairsText(finding.pairs));
  line(CellText(cell), absl::StrCat("at ", Name(verdict.stage), ". ",
                                    MarkdownText(MessageWithoutPlace(verdict.message))));
  line("blame", MarkdownText(absl::StrJoin(verdict.blame, ", ")));
  line("right, asked the same", PairsText(finding.right));
  line("fixed by", MarkdownText(finding.fixed));
  line("commit", SearchesText(searches, finding));
  line("cell", absl::StrCat(MarkdownText(absl::StripPrefix(cell.evidence.dir, "cells/")),
                            ", measured ", cell.evidence.measured));
  return absl::StrCat(out, "\n", ShellBlock({CommandOf(CellOf(*finding.row, cell))}));
}

std::string Sections(const char* title, const char* text,
                     const std::vector<PublishedFinding>& findings,
                     const std::vector<BisectReport>& searches, bool is_silent) {
  std::string out;
  for (const PublishedFinding& finding : findings) {
    if (finding.fault.is_silent == is_silent) out += Section(finding, searches);
  }
  return out.empty() ? ""
                     : absl::StrCat("## ", title, "\n\n", WrappedMarkdown("", text), "\n", out);
}

}  // namespace

std::vector<PublishedFinding> FindingsOf(const PublishedTable& table) {
  const RightRows right = RightRowsOf(table);
  std::vector<PublishedFinding> findings;
  std::map<std::string, size_t> known;
  for (const PublishedRow& row : table.rows) {
    for (RowFault& fault : FaultsOf(CellsByProbe(row))) {
      const std::string key = absl::StrJoin(
          std::vector<std::string>{
              row.engine, row.device, FaultVerdict(*fault.cell),
              std::string(MessageWithoutPlace(fault.cell->evidence.verdict.message)),
              ConditionText(fault.condition)},
          "\n");
      const auto [it, is_new] = known.emplace(key, findings.size());
      if (is_new) {
        findings.push_back({.row = &row, .fault = std::move(fault)});
        AddRight(right, findings.back());
      }
      findings[it->second].pairs.push_back(PairLabel(row));
    }
  }
  std::stable_sort(findings.begin(), findings.end(),
                   [](const PublishedFinding& a, const PublishedFinding& b) {
                     return a.fault.is_silent > b.fault.is_silent;
                   });
  return findings;
}

PublishedTable ControlTable(const PublishedTable& table) {
  PublishedTable alone{.date = table.date, .runs = table.runs};
  std::map<std::string, size_t> places;  // of rows
  std::set<std::pair<size_t, std::string>> known;
  for (const PublishedRow& row : table.rows) {
    const EngineKind* kind = FindEngineKind(row.engine);
    for (const PublishedCell& cell : row.cells) {
      if (!cell.control || kind == nullptr || kind->control.empty()) continue;
      const auto version = std::find_if(
          row.library_versions.begin(), row.library_versions.end(),
          [&](const PublishedVersion& known) { return known.subject == cell.library; });
      if (version == row.library_versions.end()) continue;
      const auto [it, is_new] = places.emplace(
          absl::StrJoin(
              std::vector<std::string>{kind->control, cell.library, row.torch, row.device}, "\n"),
          alone.rows.size());
      if (is_new) {
        PublishedRow& added = alone.rows.emplace_back(row);
        added.engine = kind->control;
        added.engine_version = {};
        added.library_from = added.library_to = *version;
        added.library_versions = {*version};
        added.cells.clear();
      }
      PublishedRow& added = alone.rows[it->second];
      PublishedCell control{
          .library = cell.library, .probe = ProbeOfControl(cell.probe), .evidence = *cell.control};
      control.id = CellId(CellOf(added, control));
      if (known.emplace(it->second, control.id).second) added.cells.push_back(std::move(control));
    }
  }
  SortAndName(alone.rows);
  return alone;
}

bool IsOf(const BisectReport& search, const PublishedFinding& finding) {
  if (!absl::StartsWith(search.cell, absl::StrCat("engine=", finding.row->engine, "@")) &&
      !absl::StartsWith(search.cell, absl::StrCat("engine=", finding.row->engine, ",")))
    return false;
  const PublishedCell& cell = *finding.fault.cell;
  if (QuestionOf(search.cell) != QuestionOf(cell.id)) return false;
  const std::optional<MeasuredCommit>& bad =
      search.direction == Direction::kMended ? search.older_end : search.newer_end;
  return bad && bad->outcome && bad->outcome->verdict.reason == cell.evidence.verdict.reason;
}

std::string FindingsMarkdown(const PublishedTable& table,
                             const std::vector<BisectReport>& searches) {
  const PublishedTable alone = ControlTable(table);
  const std::vector<PublishedFinding> pairs = FindingsOf(table), libraries = FindingsOf(alone);
  std::string out = absl::StrCat(
      "# What was found\n\n",
      WrappedMarkdown(
          "", absl::StrCat("As of ", MarkdownText(table.date),
                           ", by the cells of the table. Each finding names every pair that shows "
                           "it, under the condition that no right cell meets, and the command "
                           "that measures one of them again. \"commit\" is what `bkm bisect` "
                           "found; \"fixed by\" is the later version of one side that is right "
                           "with the same other side.")),
      "\n");
  out += Sections("Silently wrong", "These train without an error.", pairs, searches, true);
  out += Sections("Silently wrong: the library alone",
                  "Controls: the library is called by bkm, without an engine.", libraries, searches,
                  true);
  out += Sections("Errors", "These stop, with an error that one of the two raises.", pairs,
                  searches, false);
  out += Sections("Errors: the library alone", "Controls, as above.", libraries, searches, false);
  return out;
}

}  // namespace bkm
