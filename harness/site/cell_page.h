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

// "verl-torchtitan v0.8.0 \u00d7 torchtitan baba6d82e, flex": CellLabel with a multiplication sign.
std::string CellTitle(const CellRecord& cell);

// The page of one cell: the request, how far the cell came and why it stopped, the evidence, and
// how to reproduce it.
Page CellPage(const SiteRuns& runs, const SiteRun& run, const CellRecord& cell,
              const CellEvidence& evidence);

}  // namespace bkm

#endif  // HARNESS_SITE_CELL_PAGE_H_
