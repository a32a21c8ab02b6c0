// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/site/matrix_table.h"

#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/model/engine_kind.h"
#include "harness/publish/answer.h"
#include "harness/publish/faults.h"
#include "harness/publish/layouts.h"
#include "harness/publish/rows.h"
#include "harness/report/labels.h"
#include "harness/site/page.h"
#include "harness/site/verdict_view.h"

namespace bkm {
namespace {

using html::Element;
using html::Empty;
using html::Markup;
using Link = std::function<std::string(const Evidence&)>;

// Cells on one line of a table have these in common.
using LineKey = std::tuple<std::string, std::string, std::string>;

// A row's cells by line and attention; for a range, those of the newest version.
std::map<LineKey, std::map<std::string, const PublishedCell*>> LinesOf(const PublishedRow& row) {
  std::map<LineKey, std::map<std::string, const PublishedCell*>> lines;
  for (const PublishedCell& cell : row.cells)
    lines[{cell.probe.model, cell.probe.precision, OptionsText(cell.probe)}].emplace(
        cell.probe.attention, &cell);
  return lines;
}

Markup VersionCell(const PublishedVersion& version, bool is_header) {
  const std::string text = VersionText(version);
  const size_t details = text.find(" (");
  const Markup content = {text.substr(0, details),
                          details == std::string::npos
                              ? Markup()
                              : Element("span", {{"class", "date"}},
                                        text.substr(details + 2, text.size() - details - 3))};
  return is_header ? Element("th", {{"scope", "row"}}, content) : Element("td", content);
}

Markup LibraryCell(const PublishedRow& row) {
  if (row.library_from == row.library_to) return VersionCell(row.library_to, false);
  return Element("td", {VersionText(row.library_from), " to ", VersionText(row.library_to),
                        Element("span", {{"class", "date"}},
                                absl::StrCat("all ", row.library_versions.size(), " between"))});
}

Markup CellOf(const PublishedCell* cell, const std::string& attention, const Link& link) {
  if (!cell) {
    return Element("td",
                   {{"data-attention", attention}, {"data-verdict", ""}, {"class", "soft small"}},
                   "not run");
  }
  const Verdict& verdict = cell->evidence.verdict;
  Markup content = VerdictBadge(verdict.kind, link(cell->evidence));
  if (cell->flaky) content << Element("span", {{"class", "why"}}, "flaky: runs differ");
  for (const Evidence& older : cell->contradicted_by) {
    content << Element("span", {{"class", "why"}},
                       absl::StrCat("an older run said ", Name(older.verdict.kind)));
  }
  if (const std::string why = WhyText(verdict); !why.empty())
    content << Element("span", {{"class", "why clamp"}}, why);
  if (!verdict.stand_ins.empty()) content << Element("span", {{"class", "why"}}, "stand-in kernel");
  return Element("td",
                 {{"data-attention", attention}, {"data-verdict", std::string(Name(verdict.kind))}},
                 content);
}

// A badge for each layout of several ranks and each verdict that its cells have: of more than one,
// each with what tells its cell from the others.
Markup LayoutChips(const std::vector<LayoutCells>& layouts, const Link& link) {
  Markup chips;
  for (const LayoutCells& one : layouts) {
    if (one.layout == "1") continue;
    std::set<VerdictKind> kinds;
    std::vector<const PublishedCell*> shown;
    for (const PublishedCell* cell : one.cells) {
      if (kinds.insert(cell->evidence.verdict.kind).second) shown.push_back(cell);
    }
    const std::vector<std::string> distinctions = DistinctionsOf(shown);
    for (size_t i = 0; i < shown.size(); ++i) {
      const std::string& other = distinctions[i];
      chips << Element(
          "li", VerdictBadge(shown[i]->evidence.verdict.kind, link(shown[i]->evidence),
                             other.empty() ? one.layout : absl::StrCat(one.layout, ", ", other)));
    }
  }
  return Element("ul", {{"class", "chips"}}, chips);
}

// The layouts that ran with a line's model and precision. A line of a layout names its own alone.
Markup LayoutCell(const PublishedRow& row, const LineKey& key, const std::string& own,
                  const Link& link) {
  std::vector<const PublishedCell*> cells;
  for (const PublishedCell* cell : CellsByProbe(row)) {
    if (cell->probe.model == std::get<0>(key) && cell->probe.precision == std::get<1>(key))
      cells.push_back(cell);
  }
  if (own != "1") return Element("td", own);
  const std::vector<LayoutCells> layouts = ByLayout(cells);
  if (layouts.size() < 2) return Element("td", {{"class", "soft"}}, "1 rank only");
  const std::vector<std::string> missing = LayoutsNotRun(row.engine, cells);
  return Element(
      "td", {LayoutChips(layouts, link),
             missing.empty() ? Markup()
                             : Element("span", {{"class", "why"}},
                                       absl::StrCat("not run: ", absl::StrJoin(missing, ", ")))});
}

std::string SearchText(const PublishedRow& row) {
  return absl::StrCat(row.engine, " ", row.engine_version.subject, " ", row.library_to.subject, " ",
                      row.runtime, " ", row.torch, " ", row.lock);
}

Markup Line(const PublishedRow& row, const EngineKind& kind,
            const std::vector<std::string>& attentions, const LineKey& key,
            const std::map<std::string, const PublishedCell*>& cells, const Link& link,
            const std::string& today) {
  const auto& [model, precision, options] = key;
  Markup columns;
  if (!kind.engine_source.empty()) columns << VersionCell(row.engine_version, true);
  columns << (kind.engine_source.empty() ? VersionCell(row.library_to, true) : LibraryCell(row))
          << Element("td",
                     {model, Element("span", {{"class", "date"}}, precision),
                      options.empty() ? Markup() : Element("span", {{"class", "why"}}, options)});
  if (!kind.layouts.empty())
    columns << LayoutCell(row, key, LayoutOf(*cells.begin()->second), link);
  for (const std::string& attention : attentions) {
    const auto cell = cells.find(attention);
    columns << CellOf(cell == cells.end() ? nullptr : cell->second, attention, link);
  }
  columns << Element(
      "td", {{"class", "small"}},
      {row.torch, Element("span", {{"class", "date"}}, row.measured),
       row.horizon.empty() ? Markup()
                           : Element("span", {{"class", "why"}},
                                     absl::StrCat("sources known up to ", HorizonText(row))),
       row.sandbox.empty() || row.sandbox == "full"
           ? Markup()
           : Element("span", {{"class", "why"}}, absl::StrCat("sandbox: ", row.sandbox)),
       IsExpired(row, today) ? Element("span", {{"class", "why"}}, "too old: measure again")
                             : Markup(),
       row.pylock.empty() ? Markup() : Element("a", {{"href", row.pylock}}, "lock")});
  return Element("tr",
                 {{"data-engine", row.engine},
                  {"data-version", ShortLabel(row.engine_version)},
                  {"data-library", absl::StrCat(row.library, " ", ShortLabel(row.library_to))},
                  {"data-model", model},
                  {"data-search", SearchText(row)}},
                 columns);
}

std::vector<std::string> AttentionsOf(const PublishedTable& table, const EngineKind& kind) {
  std::set<std::string> asked;
  for (const PublishedRow& row : table.rows) {
    if (row.engine != kind.name) continue;
    for (const PublishedCell& cell : row.cells) asked.insert(cell.probe.attention);
  }
  std::vector<std::string> attentions;
  for (const std::string& attention : kind.attentions) {
    if (asked.erase(attention)) attentions.push_back(attention);
  }
  attentions.insert(attentions.end(), asked.begin(), asked.end());
  return attentions;
}

Markup TableOf(const PublishedTable& table, const EngineKind& kind, const Link& link,
               const std::string& today) {
  const std::vector<std::string> attentions = AttentionsOf(table, kind);
  Markup rows;
  for (const PublishedRow& row : table.rows) {
    if (row.engine != kind.name) continue;
    for (const auto& [key, cells] : LinesOf(row))
      rows << Line(row, kind, attentions, key, cells, link, today);
  }
  if (rows.empty()) return {};
  Markup head;
  const auto column = [&](const std::string& name) {
    head << Element("th", {{"scope", "col"}}, name);
  };
  if (!kind.engine_source.empty()) column(kind.engine_source);
  column(kind.library_source);
  column("model");
  if (!kind.layouts.empty()) column("layouts");
  for (const std::string& attention : attentions)
    head << Element("th", {{"scope", "col"}, {"data-attention", attention}}, attention);
  column("torch, measured");
  const std::string title = ShortTitle(kind);
  const std::string caption =
      absl::StrCat(title, ": newest versions first, a column per attention.");
  return Element(
      "section", {{"aria-labelledby", absl::StrCat("of-", kind.name)}},
      {Element("h3", {{"id", absl::StrCat("of-", kind.name)}},
               {title, " ", Element("code", {{"class", "soft"}}, kind.name)}),
       ScrollBox(title, Element("table", {{"class", "matrix"}},
                                {Element("caption", caption), Element("thead", Element("tr", head)),
                                 Element("tbody", rows)}))});
}

Markup Select(const char* name, const std::string& label, const std::vector<std::string>& values) {
  Markup options = Element("option", {{"value", ""}}, "any");
  for (const std::string& value : values) options << Element("option", {{"value", value}}, value);
  return Element("label", {label, Element("select", {{"name", name}}, options)});
}

void AddOnce(std::vector<std::string>& values, const std::string& value) {
  for (const std::string& known : values) {
    if (known == value) return;
  }
  if (!value.empty()) values.push_back(value);
}

}  // namespace

Markup LayoutsLine(const PublishedRow& row, const Link& link) {
  const EngineKind* kind = FindEngineKind(row.engine);
  if (kind == nullptr || kind->layouts.empty()) return {};
  const std::vector<const PublishedCell*> cells = CellsByProbe(row);
  const std::vector<LayoutCells> layouts = ByLayout(cells);
  if (layouts.empty()) return {};
  if (layouts.size() == 1 && layouts[0].layout == "1")
    return Element("p", {{"class", "soft small"}}, "1 rank only: no other layout was run.");
  const std::vector<std::string> missing = LayoutsNotRun(row.engine, cells);
  return {Element("p", {{"class", "eyebrow"}}, "more than 1 rank"), LayoutChips(layouts, link),
          missing.empty() ? Markup()
                          : Element("p", {{"class", "soft small"}},
                                    absl::StrCat("Not run: ", absl::StrJoin(missing, ", "), "."))};
}

Markup MatrixTables(const PublishedTable& table, const std::string& today, const Link& link) {
  Markup tables;
  for (const EngineKind& kind : EngineKinds()) tables << TableOf(table, kind, link, today);
  tables << Element("p", {{"id", "nothing"}, {"hidden", {}}},
                    "No row fits. What was never run is unknown, not a no.");
  return tables;
}

Markup FilterForm(const PublishedTable& table) {
  std::vector<std::string> engines, versions, libraries, attentions, models, verdicts;
  for (const PublishedRow& row : table.rows) {
    AddOnce(engines, row.engine);
    AddOnce(versions, ShortLabel(row.engine_version));
    AddOnce(libraries, absl::StrCat(row.library, " ", ShortLabel(row.library_to)));
    for (const PublishedCell& cell : row.cells) {
      AddOnce(attentions, cell.probe.attention);
      AddOnce(models, cell.probe.model);
    }
  }
  for (const VerdictKind kind : VerdictKinds()) verdicts.emplace_back(Name(kind));
  return Element(
      "form",
      {{"id", "filters"}, {"hidden", {}}, {"role", "search"}, {"aria-label", "Narrow the table"}},
      {Select("engine", "Engine", engines), Select("version", "Engine version", versions),
       Select("library", "Library version", libraries),
       Select("attention", "Attention", attentions), Select("model", "Model", models),
       Select("verdict", "Verdict", verdicts),
       Element("label", {"Text", Empty("input", {{"name", "text"},
                                                 {"type", "search"},
                                                 {"autocomplete", "off"},
                                                 {"placeholder", "message, commit, ..."}})}),
       Element("button", {{"type", "reset"}, {"class", "quiet"}}, "Show all"),
       Empty("p", {{"id", "shown"}, {"class", "soft small"}, {"role", "status"}})});
}

}  // namespace bkm
