// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_FINDINGS_H_
#define HARNESS_PUBLISH_FINDINGS_H_

#include <string>
#include <vector>

#include "harness/history/bisect_report.h"
#include "harness/publish/faults.h"
#include "harness/publish/published_table.h"

namespace bkm {

// One fault with all the pairs that have it.
struct PublishedFinding {
  const PublishedRow* row;         // the newest pair; of a library alone, of its control
  RowFault fault;                  // as that pair shows it
  std::vector<std::string> pairs;  // that have it, newest first: "verl 0.9.1 with torchtitan main"
  std::vector<std::string> right;  // that were asked the same and are right
  std::string fixed;  // "torchtitan 0.3.0": a later version of one side with the same other side
};

// The faults of every pair, silent ones first, in the order of the table. Pairs with the same
// verdict, reason, message and condition share one. Points into `table`.
std::vector<PublishedFinding> FindingsOf(const PublishedTable& table);

// Rows of the libraries alone, by the controls of the table's cells.
PublishedTable ControlTable(const PublishedTable& table);

// Whether the search was for this finding: of a cell of the same kind that was asked the same, with
// this reason at the end that is bad.
bool IsOf(const BisectReport& search, const PublishedFinding& finding);

// findings.md: pairs first, then libraries alone; of each the verdict, a cell that shows it, the
// command that measures it again, and the commit that made or mended it where a search found it.
std::string FindingsMarkdown(const PublishedTable& table,
                             const std::vector<BisectReport>& searches);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_FINDINGS_H_
