// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_CELL_PAGE_H_
#define HARNESS_SITE_CELL_PAGE_H_

#include <string>

#include "harness/model/cell_record.h"
#include "harness/site/cell_evidence.h"
#include "harness/site/page.h"
#include "harness/site/site_run.h"

namespace bkm {

// "verl-torchtitan v0.8.0 \u00d7 torchtitan baba6d82e, flex": CellLabel without what every cell of
// a site has in common.
std::string CellTitle(const CellRecord& cell);

// The page of one cell: what was asked, how far it came and why no further, the evidence, how to
// have it again.
Page CellPage(const SiteRuns& runs, const SiteRun& run, const CellRecord& cell,
              const CellEvidence& evidence);

}  // namespace bkm

#endif  // HARNESS_SITE_CELL_PAGE_H_
