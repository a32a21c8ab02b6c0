// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_MAP_PAGE_H_
#define HARNESS_SITE_MAP_PAGE_H_

#include "harness/apicheck/api_map.h"
#include "harness/site/page.h"

namespace bkm {

// Which commits of two histories work together: a table of ranges, and the picture.
Page MapPage(const ApiMap& map);

}  // namespace bkm

#endif  // HARNESS_SITE_MAP_PAGE_H_
