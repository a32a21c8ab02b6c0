// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_TABLE_MARKDOWN_H_
#define HARNESS_PUBLISH_TABLE_MARKDOWN_H_

#include <string>

#include "harness/publish/published_table.h"

namespace bkm {

// kNone is for a table that is copied without the folders of its runs.
enum class EvidenceLinks { kToRuns, kNone };

// table.md: for each engine what to install and what to beware of, then a narrow table, what is
// wrong with each pair (silent faults first), what was not tested, the reasons, and each row with
// how to install it and measure it again. Lines have at most 100 columns where words allow it.
std::string TableMarkdown(const PublishedTable& table,
                          EvidenceLinks links = EvidenceLinks::kToRuns);

// summary.md: the same in a few lines, for a CI job's page.
std::string StepSummary(const PublishedTable& table);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_TABLE_MARKDOWN_H_
