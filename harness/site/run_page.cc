// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/site/run_page.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "harness/model/sandbox_level.h"
#include "harness/site/cell_page.h"
#include "harness/site/table.h"
#include "harness/site/verdict_view.h"

namespace bkm {
namespace {

using html::Element;
using html::Markup;

const char* RoleText(CellRole role) {
  switch (role) {
    case CellRole::kControl:
      return "control";
    case CellRole::kRepeat:
      return "repeat";
    case CellRole::kTwin:
      return "twin";
    case CellRole::kSubject:
      break;
  }
  return "asked";
}

Markup Row(const SiteRun& run, const CellRecord& cell) {
  const std::string link = RelativeLink(run.index(), run.PageOf(cell));
  const std::optional<VerdictKind> kind =
      cell.verdict ? std::optional(cell.verdict->kind) : std::nullopt;
  const std::string why = cell.verdict ? WhyText(*cell.verdict) : "";
  return Element(
      "tr", {Element("th", {{"scope", "row"}}, Element("a", {{"href", link}}, CellTitle(cell))),
             Element("td", VerdictBadge(kind)),
             Element("td", {{"class", "small"}}, Element("span", {{"class", "clamp"}}, why)),
             Element("td", RoleText(cell.role))});
}

}  // namespace

Page RunPage(const SiteRun& run) {
  Page page;
  page.path = run.index();
  page.title = absl::StrCat("Run ", run.record().matrix);
  std::map<VerdictKind, int> counts;
  Markup rows;
  for (const CellRecord& cell : run.record().cells) {
    if (cell.verdict) ++counts[cell.verdict->kind];
    rows << Row(run, cell);
  }
  Markup chips;
  for (const auto& [kind, count] : counts)
    chips << Element("li", {VerdictBadge(kind), " ", absl::StrCat(count)});
  const std::string caption = absl::StrCat(
      "All ", run.record().cells.size(),
      " cells of this run. A control runs the library alone, to tell whose fault a failure is. "
      "Sandbox: ",
      LevelText(run.record().sandbox), ".");
  page.main << Trail(page.path, {{"index.html", "Answer"}}, page.title) << Element("h1", page.title)
            << Element("ul", {{"class", "chips"}}, chips)
            << CaptionedTable(caption, {"cell", "verdict", "why", "role"}, rows, page.title);
  return page;
}

}  // namespace bkm
