// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_ABOUT_PAGE_H_
#define HARNESS_SITE_ABOUT_PAGE_H_

#include "harness/site/page.h"

namespace bkm {

// Explains how cells run and how they are judged.
Page AboutPage();

}  // namespace bkm

#endif  // HARNESS_SITE_ABOUT_PAGE_H_
