// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_SITE_H_
#define HARNESS_SITE_SITE_H_

#include <filesystem>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/site/detection_page.h"
#include "harness/site/front_page.h"
#include "harness/site/history_page.h"
#include "harness/site/map_page.h"
#include "harness/site/site_run.h"

namespace bkm {

// The content of a site.
struct SiteContent {
  SiteRuns runs;
  SiteTable table;
  std::vector<HistoryLog> history;
  std::optional<ApiMap> map;
  std::vector<ShownDetection> detections;
  std::vector<MutatedPair> mutated;    // mutations of the sources of right pairs
  std::optional<Catalogue> catalogue;  // describes the planted faults
};

struct SiteReport {
  int pages = 0;
  int cells = 0;
  int64_t bytes = 0;
};

// Writes the site into `out`: a new folder, an empty one, or an earlier site, which is replaced.
absl::StatusOr<SiteReport> WriteSite(const SiteContent& content, const std::filesystem::path& out);

}  // namespace bkm

#endif  // HARNESS_SITE_SITE_H_
