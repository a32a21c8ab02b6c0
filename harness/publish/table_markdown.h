// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_TABLE_MARKDOWN_H_
#define HARNESS_PUBLISH_TABLE_MARKDOWN_H_

#include <string>

#include "harness/publish/published_table.h"

namespace bkm {

// A table that travels without the folders of its runs has nothing to link to.
enum class EvidenceLinks { kToRuns, kNone };

// table.md: a table per engine kind with one column per attention, how to install what works, and
// the reasons of all that does not, each once.
std::string TableMarkdown(const PublishedTable& table,
                          EvidenceLinks links = EvidenceLinks::kToRuns);

// summary.md: the same in a few lines, for the page of a CI job.
std::string StepSummary(const PublishedTable& table);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_TABLE_MARKDOWN_H_
