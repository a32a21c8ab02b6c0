// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/site/map_page.h"

#include "absl/strings/str_cat.h"
#include "harness/base/html.h"
#include "harness/site/map_picture.h"
#include "harness/site/table.h"

namespace bkm {
namespace {

using html::Element;
using html::Markup;

std::string MapLabel(const MapCommit& commit) {
  return absl::StrCat(commit.release.empty() ? commit.commit.substr(0, 9) : commit.release, " (",
                      commit.date, ")");
}

}  // namespace

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
                                    ". The sources of every pair were checked; ", map.cells.size(),
                                    " pairs ran to decide the boundaries."));
  if (!map.finished)
    page.main << Element("p", "Some boundaries are undecided; repeat bkm map to continue.");
  if (rows.empty()) {
    page.main << Element("p", "No pair is known to work yet.");
  } else {
    page.main << CaptionedTable(
        "Ranges that work. Both ends of a range ran, with the newest and the oldest engine of "
        "its row.",
        {"engine commits", "library commits", "count"}, rows);
  }
  page.main << ScrollBox("The map", Markup::FromOwnMarkup(ToSvg(map, SvgUse::kInPage)))
            << Element("p", {{"class", "soft small"}},
                       "Rows are engine commits, columns library commits. Dots are pairs that ran "
                       "and work, crosses pairs that ran and fail.");
  return page;
}

}  // namespace bkm
