// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_RUN_PAGE_H_
#define HARNESS_SITE_RUN_PAGE_H_

#include "harness/site/page.h"
#include "harness/site/site_run.h"

namespace bkm {

// Every cell of a run, with the controls and repeats that the front page leaves out.
Page RunPage(const SiteRun& run);

}  // namespace bkm

#endif  // HARNESS_SITE_RUN_PAGE_H_
