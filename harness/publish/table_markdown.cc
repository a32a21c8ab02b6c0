// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/table_markdown.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "harness/model/engine_kind.h"
#include "harness/publish/answer.h"
#include "harness/publish/coverage.h"
#include "harness/publish/escape.h"
#include "harness/publish/evidence.h"
#include "harness/publish/faults.h"
#include "harness/publish/layouts.h"
#include "harness/publish/markdown_lines.h"
#include "harness/publish/rows.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

constexpr size_t kWorkingShown = 10;
constexpr size_t kReasonsShown = 5;
constexpr size_t kVersionShown = 16;  // characters of a version in the narrow table

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

// Targets of links, by number, so that no line is as long as a path.
class Links {
 public:
  explicit Links(EvidenceLinks evidence) : evidence_(evidence) {}

  std::string To(const std::string& text, const std::string& target) {
    const auto [it, is_new] = numbers_.emplace(target, numbers_.size() + 1);
    if (is_new) absl::StrAppend(&list_, "[", it->second, "]: ", Target(target), "\n");
    return absl::StrCat("[", text, "][", it->second, "]");
  }
  std::string ToEvidence(const std::string& text, const Evidence& evidence) {
    return evidence_ == EvidenceLinks::kNone ? text : To(text, evidence.run + "/" + evidence.dir);
  }
  const std::string& list() const { return list_; }

 private:
  const EvidenceLinks evidence_;
  std::map<std::string, size_t> numbers_;
  std::string list_;
};

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
    for (size_t i = 0; i < texts_.size(); ++i)
      absl::StrAppend(&out, WrappedMarkdown(absl::StrCat(i + 1, ". "), texts_[i]));
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

// "flex" of flex_attention: the columns of a narrow table.
std::string ShortAttention(const std::string& attention) {
  static const auto& names = *new std::map<std::string, std::string>{
      {"flex_attention", "flex"}, {"flash_attention_2", "flash2"}};
  const auto it = names.find(attention);
  return it == names.end() ? attention : it->second;
}

std::string ShortVersion(const std::string& version) {
  return MarkdownText(version.size() <= kVersionShown ? version : version.substr(0, kVersionShown));
}

std::string ShortLibrary(const PublishedRow& row) {
  const std::string newest = ShortLabel(row.library_to);
  return row.library_from == row.library_to
             ? newest
             : absl::StrCat(ShortLabel(row.library_from), " to ", newest);
}

// "v0.8.0 (7aed6b230, 2026-06-01) x torchtitan 0.3.0".
std::string LongPair(const PublishedRow& row, absl::string_view between) {
  return absl::StrCat(HasEngine(row) ? absl::StrCat(VersionText(row.engine_version), between) : "",
                      row.library, " ", LibraryText(row));
}

std::string ShortPair(const PublishedRow& row) {
  const std::string library = MarkdownText(ShortLibrary(row));
  return HasEngine(row) ? absl::StrCat(MarkdownText(ShortLabel(row.engine_version)), " x ", library)
                        : library;
}

std::string Enumerated(const std::set<std::string>& names) {
  const std::vector<std::string> all(names.begin(), names.end());
  if (all.size() < 2) return absl::StrJoin(all, "");
  return absl::StrCat(absl::StrJoin(all.begin(), all.end() - 1, ", "), " and ", all.back());
}

// One attention of a row: "ok", "ok !" (with a fault in some other cell of it), "wrong", or "-"
// where nothing was run. Cells without options decide, where there are any.
std::string Mark(const PublishedRow& row, const std::string& attention, Links& links) {
  std::vector<const PublishedCell*> cells = CellsByProbe(row);
  std::erase_if(cells,
                [&](const PublishedCell* cell) { return cell->probe.attention != attention; });
  if (cells.empty()) return "-";
  const auto is_red = [](const PublishedCell* cell) {
    return !IsOk(*cell) && SaysSomething(cell->evidence.verdict);
  };
  const std::vector<const PublishedCell*> plain = PlainCells(cells);
  const auto ok = std::find_if(plain.begin(), plain.end(),
                               [](const PublishedCell* cell) { return IsOk(*cell); });
  if (ok != plain.end())
    return absl::StrCat(links.ToEvidence("**ok**", (*ok)->evidence),
                        StandInNote((*ok)->evidence.verdict).empty() ? "" : " (s)",
                        std::any_of(cells.begin(), cells.end(), is_red) ? " !" : "");
  const auto red = std::find_if(plain.begin(), plain.end(), is_red);
  if (red == plain.end()) return "unknown";
  return links.ToEvidence(
      std::string((*red)->flaky ? "flaky" : Name((*red)->evidence.verdict.kind)), (*red)->evidence);
}

// "2 of 4": with how many of the layouts of several ranks that were run a cell is right.
std::string LayoutMark(const PublishedRow& row) {
  int run = 0, right = 0;
  for (const LayoutCells& layout : ByLayout(CellsByProbe(row))) {
    if (layout.layout == "1") continue;
    ++run;
    right += std::any_of(layout.cells.begin(), layout.cells.end(),
                         [](const PublishedCell* cell) { return IsOk(*cell); });
  }
  return run == 0 ? "-" : absl::StrCat(right, " of ", run);
}

std::set<std::string> Distinct(const std::vector<const PublishedRow*>& rows,
                               std::string (*value)(const PublishedRow&)) {
  std::set<std::string> values;
  for (const PublishedRow* row : rows) values.insert(value(*row));
  return values;
}

std::string NarrowTable(const EngineKind& kind, const std::vector<const PublishedRow*>& rows,
                        Links& links) {
  std::set<std::string> attentions;
  for (const PublishedRow* row : rows) {
    for (const PublishedCell& cell : row->cells) attentions.insert(cell.probe.attention);
  }
  // What is the same in all rows stands above the table.
  const auto torch = [](const PublishedRow& row) { return row.torch; };
  const auto runtime = [](const PublishedRow& row) { return row.runtime; };
  const auto device = [](const PublishedRow& row) { return row.device; };
  std::vector<std::pair<std::string, std::string (*)(const PublishedRow&)>> more;
  std::vector<std::string> same;
  for (const auto& [name, value] :
       {std::pair<std::string, std::string (*)(const PublishedRow&)>{"torch", torch},
        {"runtime", runtime},
        {"device", device}}) {
    const std::set<std::string> values = Distinct(rows, value);
    if (values.size() > 1)
      more.emplace_back(name, value);
    else if (!values.begin()->empty())
      same.push_back(absl::StrCat(name, " ", *values.begin()));
  }
  std::vector<std::string> header = {kind.library_source, "its date"};
  if (!kind.engine_source.empty()) header.insert(header.begin(), kind.engine_source);
  for (const auto& [name, value] : more) header.push_back(name);
  for (const std::string& attention : attentions)
    header.push_back(MarkdownText(ShortAttention(attention)));
  header.insert(header.end(), {"layouts", "lock"});
  std::string out =
      absl::StrCat("All rows: ", MarkdownText(absl::StrJoin(same, ", ")), ".\n\n",
                   TableLine(header), TableLine(std::vector<std::string>(header.size(), "---")));
  for (const PublishedRow* row : rows) {
    std::vector<std::string> columns = {ShortVersion(ShortLibrary(*row)),
                                        MarkdownText(row->library_to.date)};
    if (!kind.engine_source.empty())
      columns.insert(columns.begin(), ShortVersion(ShortLabel(row->engine_version)));
    for (const auto& [name, value] : more) columns.push_back(ShortVersion(value(*row)));
    for (const std::string& attention : attentions) columns.push_back(Mark(*row, attention, links));
    columns.push_back(LayoutMark(*row));
    columns.push_back(row->pylock.empty() ? "" : links.To("lock", row->pylock));
    out += TableLine(columns);
  }
  return out + "\n";
}

// "verl 0.9.1: install torchtitan main (...) with torch 2.13.0; flex and varlen work on one rank".
std::string AnswerBlock(const Answer& answer, Links& links) {
  const EngineKind* kind = FindEngineKind(answer.engine);
  if (answer.best == nullptr)
    return WrappedMarkdown("",
                           absl::StrCat("**", answer.engine, ": none of the pairs that were run (",
                                        answer.rows, ") works.**")) +
           "\n";
  const PublishedRow& row = *answer.best;
  std::set<std::string> attentions, layouts;
  for (const LayoutCells& layout : ByLayout(CellsByProbe(row))) {
    const bool is_one_rank = layout.layout == "1";
    for (const PublishedCell* cell : is_one_rank ? PlainCells(layout.cells) : layout.cells) {
      if (!IsOk(*cell)) continue;
      is_one_rank ? attentions.insert(cell->probe.attention) : layouts.insert(layout.layout);
    }
  }
  std::string text =
      absl::StrCat("**",
                   HasEngine(row) ? absl::StrCat(kind ? kind->engine_source : row.engine, " ",
                                                 MarkdownText(VersionText(row.engine_version)))
                                  : absl::StrCat(row.library, " by its own trainer"),
                   ": install ", row.library, " ", MarkdownText(VersionText(row.library_to)),
                   " with torch ", MarkdownText(row.torch), "**",
                   row.pylock.empty() ? "" : absl::StrCat(" (", links.To("lock", row.pylock), ")"),
                   ". ", MarkdownText(Enumerated(attentions)),
                   attentions.size() == 1 ? " works" : " work", " on one rank",
                   layouts.empty() ? ""
                                   : absl::StrCat("; so ", layouts.size() == 1 ? "does " : "do ",
                                                  MarkdownText(Enumerated(layouts))),
                   ".");
  if (answer.releases != &row)
    absl::StrAppend(
        &text,
        answer.releases == nullptr
            ? absl::StrCat(HasEngine(row) ? " No pair of two releases" : " No release", " works (",
                           answer.release_rows, " were run).")
            : absl::StrCat(" Of releases only: ", MarkdownText(PairLabel(*answer.releases)), "."));
  std::string out = WrappedMarkdown("", text) + "\n";
  std::vector<std::string> silent;
  for (const RowFault& fault : FaultsOf(CellsByProbe(row))) {
    if (fault.is_silent)
      silent.push_back(absl::StrCat(ConditionText(fault.condition), " (",
                                    fault.cell->evidence.verdict.reason, ")"));
  }
  if (!silent.empty())
    out += WrappedMarkdown("", absl::StrCat("**Beware**, it trains and is silently wrong with: ",
                                            MarkdownText(absl::StrJoin(silent, "; ")), ".")) +
           "\n";
  return out;
}

// Texts, each with the pairs that it holds for, in the order of the rows.
class PairsByText {
 public:
  void Add(const std::string& text, const PublishedRow& row) {
    if (text.empty()) return;
    const auto known = std::find_if(groups_.begin(), groups_.end(),
                                    [&](const auto& group) { return group.first == text; });
    (known == groups_.end() ? groups_.emplace_back(text, std::vector<std::string>()) : *known)
        .second.push_back(ShortPair(row));
  }
  // what(pairs, text) of each, one after the other.
  template <typename What>
  std::string Told(const What& what) const {
    std::string out;
    for (const auto& [text, pairs] : groups_) out += what(absl::StrJoin(pairs, ", "), text);
    return out;
  }

 private:
  std::vector<std::pair<std::string, std::vector<std::string>>> groups_;
};

// A line for each fault, the silent ones of a pair first. Pairs with the same faults share them.
std::string FaultLines(const std::vector<const PublishedRow*>& rows, Causes& causes) {
  PairsByText groups;
  for (const PublishedRow* row : rows) {
    std::string lines;
    for (const RowFault& fault : FaultsOf(CellsByProbe(*row))) {
      const Verdict& verdict = fault.cell->evidence.verdict;
      absl::StrAppend(
          &lines,
          WrappedMarkdown(
              "- ", absl::StrCat(
                        "**", CellText(*fault.cell), "** ",
                        fault.condition.empty()
                            ? "always"
                            : absl::StrCat("with ", MarkdownText(ConditionText(fault.condition))),
                        ": ", MarkdownCode(verdict.reason), " \\[", causes.NumberOf(*fault.cell),
                        "\\]")));
    }
    groups.Add(lines, *row);
  }
  return groups.Told([](const std::string& pairs, const std::string& lines) {
    return absl::StrCat(WrappedMarkdown("", pairs + ":"), "\n", lines, "\n");
  });
}

// What rows that work were not tested with; rows with the same list share it.
std::string NotTestedLines(const std::vector<const PublishedRow*>& rows) {
  PairsByText groups;
  for (const PublishedRow* row : rows)
    groups.Add(absl::StrJoin(CoverageOf(*row).not_tested, "; "), *row);
  return groups.Told([](const std::string& pairs, const std::string& text) {
    return WrappedMarkdown("- ", absl::StrCat(pairs, ": ", MarkdownText(text)));
  });
}

std::string KindSection(const PublishedTable& table, const EngineKind& kind, Links& links,
                        Causes& causes) {
  std::vector<const PublishedRow*> rows;
  for (const PublishedRow& row : table.rows) {
    if (row.engine == kind.name) rows.push_back(&row);
  }
  if (rows.empty()) return "";
  const std::string faults = FaultLines(rows, causes), not_tested = NotTestedLines(rows);
  return absl::StrCat(
      "## ", kind.name, "\n\n", NarrowTable(kind, rows, links), NeverRunText(table, kind),
      faults.empty() ? "" : absl::StrCat("### What is wrong\n\n", faults),
      not_tested.empty() ? "" : absl::StrCat("### What was not tested\n\n", not_tested, "\n"));
}

std::string Bullet(absl::string_view name, const std::string& text) {
  return text.empty() ? "" : WrappedMarkdown("- ", absl::StrCat(name, ": ", MarkdownText(text)));
}

// All of a row: where it was measured and until when it counts, what is right, how to install it
// and how to measure it again.
std::string RowSection(const PublishedTable& table, const PublishedRow& row) {
  const Coverage coverage = CoverageOf(row);
  std::string out = absl::StrCat(
      "### ", MarkdownText(row.id), "\n\n",
      Bullet("status",
             absl::StrCat(Name(row.status), IsExpired(row, table.date) ? " (expired)" : "",
                          SandboxNote(row))),
      Bullet("versions", LongPair(row, "; ")),
      Bullet("runtime",
             absl::StrCat(row.runtime, row.torch.empty() ? "" : ", torch ", row.torch, ", ",
                          row.device, row.relax.empty() ? "" : ", without the pins on ",
                          absl::StrJoin(row.relax, ", "))),
      Bullet("measured", absl::StrCat(row.measured, "; expires ", row.expires)),
      Bullet("sources known up to", HorizonText(row)), Bullet("a step, memory", SpeedText(row)),
      Bullet("layouts", LayoutsText(row)), Bullet("ok with", absl::StrJoin(coverage.ok, "; ")),
      Bullet("not ok with", absl::StrJoin(coverage.not_ok, "; ")));
  if (!row.lock.empty())
    absl::StrAppend(&out, "- lock ", MarkdownCode(row.lock.substr(0, 12)), "\n");
  std::vector<std::string> keys;
  for (const PublishedCell* cell : NewestCells(row)) {
    if (!cell->key.empty())
      keys.push_back(
          absl::StrCat(MarkdownCode(cell->key.substr(0, 12)), " ",
                       MarkdownText(absl::StrCat(cell->probe.attention, " ", ProbeText(*cell)))));
  }
  if (!keys.empty())
    out += WrappedMarkdown("- ", absl::StrCat("cells: ", absl::StrJoin(keys, "; ")));
  out += "\n";
  if (!row.install.empty() && !IsExpired(row, table.date))
    absl::StrAppend(&out, "To install it:\n\n", ShellBlock(row.install));
  if (!row.measure_again.empty())
    absl::StrAppend(&out, "To measure it again:\n\n", ShellBlock({row.measure_again}));
  return out;
}

std::string ContradictionText(const PublishedTable& table, Links& links) {
  std::string out;
  for (const PublishedRow& row : table.rows) {
    for (const PublishedCell& cell : row.cells) {
      for (const Evidence& older : cell.contradicted_by) {
        out += WrappedMarkdown(
            "- ", absl::StrCat(MarkdownCode(cell.id), ": ", CellText(cell), " on ",
                               cell.evidence.measured, ", but ",
                               links.ToEvidence(MarkdownText(ShortText(older.verdict)), older),
                               " on ", older.measured));
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

std::string TableMarkdown(const PublishedTable& table, EvidenceLinks evidence) {
  Causes causes;
  Links links(evidence);
  std::string out = absl::StrCat(
      "# Which versions work together\n\n",
      WrappedMarkdown(
          "",
          absl::StrCat("As of ", MarkdownText(table.date),
                       ". A pair that is not here was never run: that is unknown, not "
                       "\"no\".",
                       evidence == EvidenceLinks::kToRuns ? " Marks link to their evidence." : "",
                       " A range names every version that was run, and its lock is that of "
                       "the newest. `bkm audit` looks up your own versions.")),
      "\n", PartialText(table), SandboxText(table));
  for (const Answer& answer : AnswersOf(table)) out += AnswerBlock(answer, links);
  out += WrappedMarkdown(
             "",
             "In the tables, **ok** means that every claim of bkm held in every cell that ran "
             "with this attention; `ok !` that a cell without options is right, and another "
             "one with this attention is not, which the list below the table names; `(s)` that "
             "a stand-in kernel of bkm's ran for the real one; `-` that nothing was run. "
             "\"layouts\" says with how many of the layouts of several ranks a cell is "
             "right.") +
         "\n";
  for (const EngineKind& kind : EngineKinds())
    absl::StrAppend(&out, KindSection(table, kind, links, causes));
  const std::string reasons = causes.List();
  if (!reasons.empty()) absl::StrAppend(&out, "## Reasons\n\n", reasons, "\n");
  absl::StrAppend(
      &out, ContradictionText(table, links), "## The rows\n\n",
      WrappedMarkdown("",
                      "The command that measures a row again asks for the cells of the newest "
                      "version without further options. Its run.json names the lock; the "
                      "`key` in a cell's request.json is the same if the question is the "
                      "same, down to the files of both subjects."),
      "\n");
  for (const PublishedRow& row : table.rows) out += RowSection(table, row);
  return out + links.list();
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
    absl::StrAppend(&working, "- ", row.engine, ": ", MarkdownText(LongPair(row, " x ")), " (",
                    Name(row.status), ")\n");
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
