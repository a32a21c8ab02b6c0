// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_FRONT_PAGE_H_
#define HARNESS_SITE_FRONT_PAGE_H_

#include <vector>

#include "harness/selftest/mutation_report.h"
#include "harness/site/page.h"
#include "harness/site/site_run.h"
#include "harness/site/site_table.h"

namespace bkm {

// First what to install; then the whole table with its filters, how many mutations the checks see,
// and the meaning of the verdicts.
Page FrontPage(const SiteTable& table, const SiteRuns& runs,
               const std::vector<MutatedPair>& mutated);

}  // namespace bkm

#endif  // HARNESS_SITE_FRONT_PAGE_H_
