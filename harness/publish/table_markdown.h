// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_TABLE_MARKDOWN_H_
#define HARNESS_PUBLISH_TABLE_MARKDOWN_H_

#include <string>

#include "harness/publish/published_table.h"

namespace bkm {

// table.md: a table per engine kind with one column per attention, how to install what works, and
// the reasons of all that does not, each once. Verdicts link to their evidence.
std::string TableMarkdown(const PublishedTable& table);

// summary.md: the same in a few lines, for the page of a CI job.
std::string StepSummary(const PublishedTable& table);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_TABLE_MARKDOWN_H_
