// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_ABOUT_PAGE_H_
#define HARNESS_SITE_ABOUT_PAGE_H_

#include "harness/site/page.h"

namespace bkm {

// How cells are made and judged, in words.
Page AboutPage();

}  // namespace bkm

#endif  // HARNESS_SITE_ABOUT_PAGE_H_
