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

// The table of supported versions and where it came from.
struct SiteTable {
  PublishedTable table;
  std::filesystem::path folder;  // that its runs are relative to, and where its locks lie
  std::string today;             // YYYY-MM-DD: the day of the site
};

// table.json of bkm publish.
absl::StatusOr<SiteTable> ReadSiteTable(const std::filesystem::path& path,
                                        const std::string& today);

// The rows that these runs give. It asks no registry and no repository: versions are not joined to
// ranges, and rows have no lock files; bkm publish does both.
absl::StatusOr<SiteTable> TableOfRuns(const std::vector<std::filesystem::path>& runs,
                                      const std::string& today);

// The page of the cell that is the evidence; empty when the site does not show it.
std::string PageOfEvidence(const Evidence& evidence, const SiteTable& table, const SiteRuns& runs);

}  // namespace bkm

#endif  // HARNESS_SITE_SITE_TABLE_H_
