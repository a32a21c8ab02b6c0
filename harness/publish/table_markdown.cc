// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/table_markdown.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "harness/model/engine_kind.h"
#include "harness/publish/coverage.h"
#include "harness/publish/escape.h"
#include "harness/publish/evidence.h"
#include "harness/publish/layouts.h"
#include "harness/publish/rows.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

constexpr size_t kWorkingShown = 10;
constexpr size_t kReasonsShown = 5;

std::string TableLine(const std::vector<std::string>& columns) {
  return absl::StrCat("| ", absl::StrJoin(columns, " | "), " |\n");
}

// A link's target without spaces and brackets, which would end it.
std::string Target(const std::string& path) {
  return absl::StrReplaceAll(path, {{" ", "%20"},
                                    {"(", "%28"},
                                    {")", "%29"},
                                    {"|", "%7C"},
                                    {"<", "%3C"},
                                    {">", "%3E"},
                                    {"\\", "%5C"},
                                    {"\n", "%0A"}});
}

std::string Linked(const std::string& text, const Evidence& evidence, EvidenceLinks links) {
  if (links == EvidenceLinks::kNone) return text;
  return absl::StrCat("[", text, "](", Target(evidence.run + "/" + evidence.dir), ")");
}

// Why a cell is not ok. Equal causes have equal texts.
std::string Cause(const PublishedCell& cell) {
  const Verdict& verdict = cell.evidence.verdict;
  return absl::StrCat(
      "**", CellText(cell), "** at ", Name(verdict.stage), ", ",
      verdict.reason.empty() ? "" : absl::StrCat(MarkdownCode(verdict.reason), ": "),
      MarkdownText(MessageWithoutPlace(verdict.message)),
      verdict.blame.empty()
          ? ""
          : absl::StrCat(" (blame: ", MarkdownText(absl::StrJoin(verdict.blame, ", ")), ")"));
}

// Lines of a fenced block of code, which none of them ends.
std::string CodeLines(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) {
    absl::StrAppend(&out, absl::StrReplaceAll(ShownText(line), {{"\n", " "}, {"```", "'''"}}),
                    "\n");
  }
  return out;
}

// Numbers causes in order of appearance and counts their cells.
class Causes {
 public:
  size_t NumberOf(const PublishedCell& cell) {
    const auto [it, is_new] = numbers_.emplace(Cause(cell), numbers_.size() + 1);
    if (is_new) texts_.push_back(it->first), counts_.push_back(0);
    ++counts_[it->second - 1];
    return it->second;
  }
  std::string List() const {
    std::string out;
    for (size_t i = 0; i < texts_.size(); ++i) absl::StrAppend(&out, i + 1, ". ", texts_[i], "\n");
    return out;
  }
  // The causes with the most cells.
  std::string Worst(size_t shown) const {
    std::vector<size_t> order(texts_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return counts_[a] > counts_[b]; });
    std::string out;
    for (size_t i = 0; i < std::min(shown, order.size()); ++i) {
      absl::StrAppend(&out, "- ", counts_[order[i]],
                      counts_[order[i]] == 1 ? " cell: " : " cells: ", texts_[order[i]], "\n");
    }
    if (order.size() > shown)
      absl::StrAppend(&out, "- and ", order.size() - shown, " more causes\n");
    return out;
  }

 private:
  std::map<std::string, size_t> numbers_;
  std::vector<std::string> texts_;
  std::vector<int> counts_;
};

// A cell's settings without its attention.
std::string ProbeText(const PublishedCell& cell) {
  return absl::StrCat(cell.probe.model, " ", cell.probe.precision,
                      OptionsText(cell.probe).empty() ? "" : ", ", OptionsText(cell.probe));
}

// One attention of a row: "[**ok**](evidence) qwen3 bf16, llama3 bf16; [broken](evidence) \[2\]".
std::string AttentionText(const std::vector<const PublishedCell*>& cells, bool tell_probes,
                          EvidenceLinks links, Causes& causes) {
  struct Group {
    const PublishedCell* first;
    std::vector<std::string> probes;
  };
  std::vector<std::string> order;
  std::map<std::string, Group> groups;  // by verdict
  for (const PublishedCell* cell : cells) {
    const std::string mark = IsOk(*cell) ? "" : absl::StrCat(" \\[", causes.NumberOf(*cell), "\\]");
    const std::string text = absl::StrCat(CellText(*cell), mark);
    const auto [it, is_new] = groups.emplace(text, Group{.first = cell});
    if (is_new) order.push_back(text);
    const std::string probe = MarkdownText(ProbeText(*cell));
    std::vector<std::string>& probes = it->second.probes;
    if (std::find(probes.begin(), probes.end(), probe) == probes.end()) probes.push_back(probe);
  }
  std::vector<std::string> parts;
  for (const std::string& text : order) {
    const Group& group = groups.at(text);
    const std::string verdict = CellText(*group.first);
    parts.push_back(absl::StrCat(
        Linked(IsOk(*group.first) ? "**ok**" : verdict, group.first->evidence, links),
        text.substr(verdict.size()), tell_probes ? " " + absl::StrJoin(group.probes, ", ") : ""));
  }
  return parts.empty() ? "unknown" : absl::StrJoin(parts, "; ");
}

// The plainest right cell of each attention: "flex 0.52 s, 950 MiB".
std::string SpeedText(const PublishedRow& row) {
  std::map<std::string, std::string> texts;
  for (const PublishedCell* cell : NewestCells(row)) {
    const CellCost& cost = cell->evidence.cost;
    if (!IsOk(*cell) || !OptionsText(cell->probe).empty() || cost.step_seconds <= 0) continue;
    texts.emplace(cell->probe.attention,
                  absl::StrFormat("%s %.2f s, %.0f MiB", cell->probe.attention, cost.step_seconds,
                                  cost.peak_mib));
  }
  return absl::StrJoin(texts, "; ",
                       [](std::string* out, const auto& text) { *out += text.second; });
}

// How many pairs of the table's versions were never run; empty if all were.
std::string NeverRunText(const PublishedTable& table, const EngineKind& kind) {
  std::set<std::string> engines, libraries;
  std::set<std::pair<std::string, std::string>> run;
  for (const PublishedRow& row : table.rows) {
    if (row.engine != kind.name) continue;
    engines.insert(row.engine_version.subject);
    for (const PublishedVersion& version : row.library_versions) {
      libraries.insert(version.subject);
      run.emplace(row.engine_version.subject, version.subject);
    }
  }
  const size_t pairs = engines.size() * libraries.size();
  if (run.size() == pairs) return "";
  return absl::StrCat("Of the ", pairs, " pairs of these versions, ", pairs - run.size(),
                      " were never run: unknown.\n\n");
}

std::string KindTable(const PublishedTable& table, const EngineKind& kind, EvidenceLinks links,
                      Causes& causes) {
  std::set<std::string> asked, probes;
  std::string lines;
  for (const PublishedRow& row : table.rows) {
    if (row.engine != kind.name) continue;
    for (const PublishedCell& cell : row.cells)
      asked.insert(cell.probe.attention), probes.insert(ProbeText(cell));
  }
  if (asked.empty()) return "";
  const bool tell_horizon = std::any_of(table.rows.begin(), table.rows.end(),
                                        [](const auto& row) { return !row.horizon.empty(); });
  const bool tell_speed = std::any_of(table.rows.begin(), table.rows.end(),
                                      [](const auto& row) { return !SpeedText(row).empty(); });
  for (const PublishedRow& row : table.rows) {
    if (row.engine != kind.name) continue;
    std::vector<std::string> columns = {
        MarkdownText(VersionText(row.engine_version)), MarkdownText(LibraryText(row)),
        MarkdownText(absl::StrCat(row.runtime, row.torch.empty() ? "" : ", torch ", row.torch,
                                  row.relax.empty() ? "" : ", without the pins on ",
                                  absl::StrJoin(row.relax, ", "))),
        MarkdownText(row.device),
        absl::StrCat("**", Name(row.status), "**", IsExpired(row, table.date) ? " (expired)" : "",
                     SandboxNote(row))};
    for (const std::string& attention : asked) {
      std::vector<const PublishedCell*> cells = NewestCells(row);
      std::erase_if(cells, [&](const auto* cell) { return cell->probe.attention != attention; });
      columns.push_back(AttentionText(cells, probes.size() > 1, links, causes));
    }
    if (tell_speed) columns.push_back(MarkdownText(SpeedText(row)));
    const Coverage coverage = CoverageOf(row);
    columns.push_back(MarkdownText(LayoutsText(row)));
    for (const auto* entries : {&coverage.ok, &coverage.not_ok, &coverage.not_tested})
      columns.push_back(MarkdownText(absl::StrJoin(*entries, "; ")));
    columns.push_back(MarkdownText(row.measured));
    if (tell_horizon) columns.push_back(MarkdownText(HorizonText(row)));
    columns.insert(columns.end(),
                   {MarkdownText(row.expires),
                    row.pylock.empty() ? "" : absl::StrCat("[lock](", Target(row.pylock), ")")});
    absl::StrAppend(&lines, TableLine(columns));
  }
  std::vector<std::string> header = {kind.engine_source, kind.library_source, "runtime", "device",
                                     "status"};
  for (const std::string& attention : asked) header.push_back(MarkdownText(attention));
  if (tell_speed) header.push_back("a step, memory");
  header.insert(header.end(), {"layouts", "ok with", "not ok with", "not tested", "measured"});
  if (tell_horizon) header.push_back("sources known up to");
  header.insert(header.end(), {"expires", "lock"});
  return absl::StrCat("## ", kind.name, "\n\n", TableLine(header),
                      TableLine(std::vector<std::string>(header.size(), "---")), lines, "\n",
                      NeverRunText(table, kind));
}

std::string InstallText(const PublishedTable& table) {
  std::string out;
  for (const PublishedRow& row : table.rows) {
    if (row.install.empty() || IsExpired(row, table.date)) continue;
    absl::StrAppend(&out, "### ", row.engine, ": ", MarkdownText(VersionText(row.engine_version)),
                    " with ", row.library, " ", MarkdownText(VersionText(row.library_to)),
                    "\n\n```sh\n", CodeLines(row.install), "```\n\n");
  }
  return out.empty() ? "" : absl::StrCat("## How to install what works\n\n", out);
}

// One command for each row, with what it must find again: the lock, and the keys of the cells.
std::string MeasureAgainText(const PublishedTable& table) {
  std::string out;
  for (const PublishedRow& row : table.rows) {
    if (row.measure_again.empty()) continue;
    absl::StrAppend(&out, "### ", MarkdownText(row.id), "\n\n```sh\n",
                    CodeLines({row.measure_again}), "```\n\n");
    if (!row.lock.empty())
      absl::StrAppend(&out, "- lock ", MarkdownCode(row.lock.substr(0, 12)), "\n");
    for (const PublishedCell* cell : NewestCells(row)) {
      if (cell->key.empty()) continue;
      absl::StrAppend(&out, "- cell ", MarkdownCode(cell->key.substr(0, 12)), ": ",
                      MarkdownText(absl::StrCat(cell->probe.attention, " ", ProbeText(*cell))),
                      "\n");
    }
    out += "\n";
  }
  if (out.empty()) return "";
  return absl::StrCat(
      "## How to measure a row again\n\nThe command asks for the cells of the newest version "
      "without further options. Its run.json names the lock; the `key` in a cell's request.json is "
      "the same if the question is the same, down to the files of both subjects.\n\n",
      out);
}

std::string ContradictionText(const PublishedTable& table, EvidenceLinks links) {
  std::string out;
  for (const PublishedRow& row : table.rows) {
    for (const PublishedCell& cell : row.cells) {
      for (const Evidence& older : cell.contradicted_by) {
        absl::StrAppend(&out, "- ", MarkdownCode(cell.id), ": ", CellText(cell), " on ",
                        cell.evidence.measured, ", but ",
                        Linked(MarkdownText(ShortText(older.verdict)), older, links), " on ",
                        older.measured, "\n");
      }
    }
  }
  return out.empty() ? ""
                     : absl::StrCat("## Older evidence says otherwise\n\nThe newest counts.\n\n",
                                    out, "\n");
}

std::string PartialText(const PublishedTable& table) {
  std::vector<std::string> partial;
  for (const PublishedRun& run : table.runs) {
    if (!run.finished) partial.push_back(MarkdownText(run.dir));
  }
  return partial.empty() ? ""
                         : absl::StrCat("**Not finished:** ", absl::StrJoin(partial, ", "),
                                        ". What it did not measure is unknown.\n\n");
}

// One line for rows of older versions.
std::string SandboxText(const PublishedTable& table) {
  const auto without = std::count_if(table.rows.begin(), table.rows.end(),
                                     [](const PublishedRow& row) { return row.sandbox.empty(); });
  if (without == 0) return "";
  return absl::StrCat("The sandbox level of ", without, " of ", table.rows.size(),
                      " rows was not recorded.\n\n");
}

}  // namespace

std::string TableMarkdown(const PublishedTable& table, EvidenceLinks links) {
  Causes causes;
  std::string out = absl::StrCat(
      "# Which versions work together\n\nAs of ", MarkdownText(table.date),
      ". A pair that is not here was never run: that is unknown, not \"no\". ",
      links == EvidenceLinks::kToRuns ? "Verdicts link to their evidence; a" : "A",
      " range names every version that was run, and its lock is that of the newest.\n\n",
      PartialText(table), SandboxText(table));
  for (const EngineKind& kind : EngineKinds())
    absl::StrAppend(&out, KindTable(table, kind, links, causes));
  const std::string reasons = causes.List();
  if (!reasons.empty()) absl::StrAppend(&out, "## Reasons\n\n", reasons, "\n");
  absl::StrAppend(&out, ContradictionText(table, links), InstallText(table),
                  MeasureAgainText(table));
  return out;
}

std::string StepSummary(const PublishedTable& table) {
  std::map<RowStatus, int> counts;
  Causes causes;
  std::string working;
  size_t works = 0, expired = 0;
  for (const PublishedRow& row : table.rows) {
    ++counts[row.status];
    expired += IsExpired(row, table.date);
    for (const PublishedCell* cell : NewestCells(row)) {
      if (!IsOk(*cell)) causes.NumberOf(*cell);
    }
    if (!Works(row)) continue;
    if (++works > kWorkingShown) continue;
    absl::StrAppend(&working, "- ", row.engine, ": ", MarkdownText(VersionText(row.engine_version)),
                    " x ", row.library, " ", MarkdownText(LibraryText(row)), " (", Name(row.status),
                    ")\n");
  }
  if (works > kWorkingShown) absl::StrAppend(&working, "- and ", works - kWorkingShown, " more\n");
  std::vector<std::string> parts;
  for (const auto& [status, count] : counts)
    parts.push_back(absl::StrCat(count, " ", Name(status)));
  if (expired > 0) parts.push_back(absl::StrCat(expired, " of them expired"));
  std::string out = absl::StrCat("## Which versions work together: ", absl::StrJoin(parts, ", "),
                                 "\n\n", PartialText(table));
  if (!working.empty()) absl::StrAppend(&out, "Works, newest first:\n\n", working, "\n");
  const std::string worst = causes.Worst(kReasonsShown);
  if (!worst.empty()) absl::StrAppend(&out, "Does not, by cause:\n\n", worst);
  return out;
}

}  // namespace bkm
