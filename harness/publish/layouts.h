// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_LAYOUTS_H_
#define HARNESS_PUBLISH_LAYOUTS_H_

#include <string>
#include <vector>

#include "harness/publish/published_table.h"

namespace bkm {

// The layout of a cell, as its options name it; "1" for one rank.
std::string LayoutOf(const PublishedCell& cell);

// What the table says of one layout ("1": one rank): rows without a cell of it are left out, and
// the status of the others is that of its cells.
PublishedTable OfLayout(PublishedTable table, const std::string& layout);

// A layout, and the cells that ran with it.
struct LayoutCells {
  std::string layout;
  std::vector<const PublishedCell*> cells;
};
// The layouts of these cells: one rank first, then in the order of the cells.
std::vector<LayoutCells> ByLayout(const std::vector<const PublishedCell*>& cells);

// A row's cells, of each probe the newest.
std::vector<const PublishedCell*> CellsByProbe(const PublishedRow& row);

// The kinds of parallelism that the engine offers and that none of these cells ran with.
std::vector<std::string> LayoutsNotRun(const std::string& engine,
                                       const std::vector<const PublishedCell*>& cells);

// For each layout of the row what its cells said, and what was not run: "1 rank: ok; dp_shard=2: 2
// ok, 1 wrong; not run: cp, pp". "1 rank only: ok" if nothing else was run; empty for an engine
// without layouts.
std::string LayoutsText(const PublishedRow& row);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_LAYOUTS_H_
