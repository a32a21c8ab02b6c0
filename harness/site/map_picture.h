// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_MAP_PICTURE_H_
#define HARNESS_SITE_MAP_PICTURE_H_

#include <string>

#include "harness/apicheck/api_map.h"

namespace bkm {

// Where a picture is shown. A file of its own follows the viewer's light or dark mode; in a page,
// the page's style sheet styles the classes below `api-map`.
enum class SvgUse { kFile, kInPage };

// The map as a picture: the static grades, the bands that work, the pairs that ran, releases and
// months.
std::string ToSvg(const ApiMap& map, SvgUse use = SvgUse::kFile);

}  // namespace bkm

#endif  // HARNESS_SITE_MAP_PICTURE_H_
