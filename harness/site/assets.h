// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_ASSETS_H_
#define HARNESS_SITE_ASSETS_H_

namespace bkm {

// The files of assets/, compiled into the program.
extern const char kSiteStyle[];
extern const char kSiteScript[];
extern const char kSiteIcon[];

}  // namespace bkm

#endif  // HARNESS_SITE_ASSETS_H_
