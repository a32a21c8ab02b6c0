// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/layouts.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/model/engine_kind.h"
#include "harness/model/layout.h"
#include "harness/publish/rows.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

constexpr char kOneRank[] = "1";

// "ok", or "2 ok, 1 wrong" if cells differ.
std::string VerdictsText(const std::vector<const PublishedCell*>& cells) {
  std::vector<std::string> order;
  std::map<std::string, int> counts;
  for (const PublishedCell* cell : cells) {
    const std::string text = CellText(*cell);
    if (++counts[text] == 1) order.push_back(text);
  }
  if (order.size() == 1) return order[0];
  return absl::StrJoin(order, ", ", [&](std::string* out, const std::string& text) {
    absl::StrAppend(out, counts[text], " ", text);
  });
}

}  // namespace

std::string LayoutOf(const PublishedCell& cell) {
  return cell.probe.layout == Layout() ? kOneRank : LayoutText(cell.probe.layout);
}

PublishedTable OfLayout(PublishedTable table, const std::string& layout) {
  for (PublishedRow& row : table.rows) {
    row.cells.erase(
        std::remove_if(row.cells.begin(), row.cells.end(),
                       [&](const PublishedCell& cell) { return LayoutOf(cell) != layout; }),
        row.cells.end());
    row.status = StatusOf(row);
  }
  table.rows.erase(std::remove_if(table.rows.begin(), table.rows.end(),
                                  [](const PublishedRow& row) { return row.cells.empty(); }),
                   table.rows.end());
  return table;
}

std::vector<LayoutCells> ByLayout(const std::vector<const PublishedCell*>& cells) {
  std::vector<LayoutCells> layouts;
  for (const PublishedCell* cell : cells) {
    const std::string layout = LayoutOf(*cell);
    auto found = std::find_if(layouts.begin(), layouts.end(),
                              [&](const LayoutCells& one) { return one.layout == layout; });
    if (found == layouts.end())
      found = layouts.insert(layout == kOneRank ? layouts.begin() : layouts.end(), {layout, {}});
    found->cells.push_back(cell);
  }
  return layouts;
}

std::vector<const PublishedCell*> CellsByProbe(const PublishedRow& row) {
  std::set<std::tuple<std::string, std::string, std::string, std::string>> seen;
  std::vector<const PublishedCell*> cells;
  for (const PublishedCell& cell : row.cells) {  // newest version first
    if (seen.emplace(cell.probe.model, cell.probe.attention, cell.probe.precision,
                     OptionsText(cell.probe))
            .second)
      cells.push_back(&cell);
  }
  return cells;
}

std::vector<std::string> LayoutsNotRun(const std::string& engine,
                                       const std::vector<const PublishedCell*>& cells) {
  const EngineKind* kind = FindEngineKind(engine);
  if (kind == nullptr) return {};
  std::set<std::string> ran;
  for (const PublishedCell* cell : cells) {
    for (const LayoutDimension& dimension : LayoutDimensions()) {
      if (cell->probe.layout.*dimension.degree > 1) ran.insert(dimension.name);
    }
  }
  std::vector<std::string> missing;
  for (const std::string& dimension : kind->layouts) {
    if (!ran.contains(dimension)) missing.push_back(dimension);
  }
  return missing;
}

std::string LayoutsText(const PublishedRow& row) {
  const EngineKind* kind = FindEngineKind(row.engine);
  if (kind == nullptr || kind->layouts.empty()) return "";
  const std::vector<const PublishedCell*> cells = CellsByProbe(row);
  const std::vector<LayoutCells> layouts = ByLayout(cells);
  if (layouts.size() == 1 && layouts[0].layout == kOneRank)
    return absl::StrCat("1 rank only: ", VerdictsText(layouts[0].cells));
  std::vector<std::string> parts;
  for (const LayoutCells& one : layouts) {
    parts.push_back(absl::StrCat(one.layout == kOneRank ? "1 rank" : one.layout, ": ",
                                 VerdictsText(one.cells)));
  }
  if (const auto missing = LayoutsNotRun(row.engine, cells); !missing.empty())
    parts.push_back(absl::StrCat("not run: ", absl::StrJoin(missing, ", ")));
  return absl::StrJoin(parts, "; ");
}

}  // namespace bkm
