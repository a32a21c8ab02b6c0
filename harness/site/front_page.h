// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_FRONT_PAGE_H_
#define HARNESS_SITE_FRONT_PAGE_H_

#include <filesystem>

#include "harness/publish/published_table.h"
#include "harness/site/page.h"
#include "harness/site/site_run.h"

namespace bkm {

// The table of supported versions and where it came from: the folder that its runs are relative to.
struct SiteTable {
  PublishedTable table;
  std::filesystem::path folder;
};

// What to install, first; then the whole table with its filters, and what the verdicts mean.
Page FrontPage(const SiteTable& table, const SiteRuns& runs);

// The page of the cell that is the evidence; empty when the site does not show it.
std::string PageOfEvidence(const Evidence& evidence, const SiteTable& table, const SiteRuns& runs);

}  // namespace bkm

#endif  // HARNESS_SITE_FRONT_PAGE_H_
