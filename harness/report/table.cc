// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/report/table.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/shown_text.h"
#include "harness/model/engine_kind.h"
#include "harness/model/sandbox_level.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

std::string Row(const std::vector<std::string>& columns) {
  return absl::StrCat("| ", absl::StrJoin(columns, " | "), " |\n");
}

// Numbers the reasons in order of appearance.
class Notes {
 public:
  int NumberOf(const Verdict& verdict) {
    const std::string text = absl::StrCat(
        "**", Name(verdict.kind), "** at ", Name(verdict.stage),
        verdict.reason.empty() ? "" : absl::StrCat(", ", MarkdownCode(verdict.reason)), ": ",
        MarkdownText(MessageWithoutPlace(verdict.message)),
        verdict.blame.empty()
            ? ""
            : absl::StrCat(" (blame: ", MarkdownText(absl::StrJoin(verdict.blame, ", ")), ")"));
    const auto [it, is_new] = numbers_.emplace(text, static_cast<int>(texts_.size()) + 1);
    if (is_new) texts_.push_back(text);
    return it->second;
  }
  std::string Markdown() const {
    std::string out;
    for (size_t i = 0; i < texts_.size(); ++i) absl::StrAppend(&out, i + 1, ". ", texts_[i], "\n");
    return out;
  }

 private:
  std::map<std::string, int> numbers_;
  std::vector<std::string> texts_;
};

struct TableRow {
  std::vector<std::string> identity;
  std::map<std::string, std::vector<std::string>>
      verdicts;  // attention -> "ok", "broken [2]"; several probes may share it
};

std::string VerdictText(const CellRecord& cell, Notes& notes) {
  if (!cell.verdict) return "pending";
  if (cell.is_green()) return absl::StrCat("**ok**", StandInNote(*cell.verdict));
  return absl::StrCat(cell.is_flaky() ? "flaky: " : "", Name(cell.verdict->kind), " [",
                      notes.NumberOf(*cell.verdict), "]");
}

std::vector<TableRow> RowsOf(const RunRecord& run, const EngineKind& kind, Notes& notes) {
  std::vector<TableRow> rows;
  for (const CellRecord& cell : run.cells) {
    if (cell.cell.engine != kind.name || cell.role != CellRole::kSubject) continue;
    std::vector<std::string> identity;
    if (!kind.engine_source.empty())
      identity.push_back(
          VersionText(cell.cell.engine_label, cell.cell.engine_subject, cell.engine_date));
    identity.push_back(LibraryText(cell));
    identity.insert(identity.end(), {cell.cell.runtime, cell.cell.torch, cell.cell.probe.model,
                                     cell.cell.probe.precision});
    auto row = std::find_if(rows.begin(), rows.end(),
                            [&](const TableRow& r) { return r.identity == identity; });
    if (row == rows.end()) row = rows.insert(rows.end(), {.identity = identity});
    std::string text = VerdictText(cell, notes);
    if (const std::string options = OptionsText(cell.cell); !options.empty())
      absl::StrAppend(&text, " (", MarkdownText(options), ")");
    if (!cell.cell.plant.empty())
      absl::StrAppend(&text, " (planted: ", MarkdownText(absl::StrJoin(cell.cell.plant, ", ")),
                      ")");
    row->verdicts[cell.cell.probe.attention].push_back(text);
  }
  return rows;
}

// "**ok** x 50": each verdict once with its count, in order of appearance.
std::string Counted(const std::vector<std::string>& verdicts) {
  std::vector<std::pair<std::string, int>> counts;
  for (const std::string& text : verdicts) {
    const auto it = std::find_if(counts.begin(), counts.end(),
                                 [&](const auto& entry) { return entry.first == text; });
    if (it == counts.end()) {
      counts.emplace_back(text, 1);
    } else {
      ++it->second;
    }
  }
  std::vector<std::string> parts;
  for (const auto& [text, count] : counts)
    parts.push_back(count == 1 ? text : absl::StrCat(text, " x ", count));
  return absl::StrJoin(parts, ", ");
}

std::string KindTable(const RunRecord& run, const EngineKind& kind, Notes& notes) {
  const std::vector<TableRow> rows = RowsOf(run, kind, notes);
  if (rows.empty()) return "";
  std::vector<std::string> attentions;
  for (const std::string& attention : kind.attentions) {
    const bool asked = std::any_of(rows.begin(), rows.end(), [&](const TableRow& row) {
      return row.verdicts.contains(attention);
    });
    if (asked) attentions.push_back(attention);
  }
  std::vector<std::string> header;
  if (!kind.engine_source.empty()) header.push_back(kind.engine_source);
  header.insert(header.end(), {kind.library_source, "runtime", "torch", "model", "precision"});
  header.insert(header.end(), attentions.begin(), attentions.end());
  std::string out =
      absl::StrCat("## ", kind.name,
                   !kind.engine_source.empty() ? ""
                   : kind.only_by_trainer      ? " (the library's own trainer)"
                                               : " (control: the library alone)",
                   "\n\n", Row(header), Row(std::vector<std::string>(header.size(), "---")));
  for (const TableRow& row : rows) {
    std::vector<std::string> columns;
    for (const std::string& text : row.identity) columns.push_back(MarkdownText(text));
    for (const std::string& attention : attentions) {
      const auto it = row.verdicts.find(attention);
      columns.push_back(it == row.verdicts.end() ? "" : Counted(it->second));
    }
    absl::StrAppend(&out, Row(columns));
  }
  return absl::StrCat(out, "\n");
}

}  // namespace

std::string TableMarkdown(const RunRecord& run) {
  Notes notes;
  std::string out = absl::StrCat(
      "# Which versions work together: ", MarkdownText(run.matrix), "\n\n",
      run.finished ? "" : "**This run is not finished.** Repeat the command to finish it.\n\n",
      "Sandbox: ", LevelText(run.sandbox), ".\n\n");
  for (const EngineKind& kind : EngineKinds()) absl::StrAppend(&out, KindTable(run, kind, notes));
  const std::string reasons = notes.Markdown();
  if (!reasons.empty()) absl::StrAppend(&out, "## Reasons\n\n", reasons);
  return Printable(std::move(out));
}

}  // namespace bkm
