// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_SITE_TABLE_H_
#define HARNESS_SITE_SITE_TABLE_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/publish/published_table.h"
#include "harness/site/site_run.h"

namespace bkm {

// The table of supported versions, and its place.
struct SiteTable {
  PublishedTable table;
  std::filesystem::path folder;  // runs and locks of the table are relative to it
  std::string today;             // YYYY-MM-DD: the date of the site
};

// Reads table.json of bkm publish.
absl::StatusOr<SiteTable> ReadSiteTable(const std::filesystem::path& path,
                                        const std::string& today);

// The rows of these runs. It needs no registry and no repository, so versions are not joined into
// ranges and rows have no lock files; bkm publish adds both.
absl::StatusOr<SiteTable> TableOfRuns(const std::vector<std::filesystem::path>& runs,
                                      const std::string& today);

// The page of the cell that gave the evidence; empty if the site does not show it.
std::string PageOfEvidence(const Evidence& evidence, const SiteTable& table, const SiteRuns& runs);

}  // namespace bkm

#endif  // HARNESS_SITE_SITE_TABLE_H_
