// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_MASK_PICTURE_H_
#define HARNESS_SITE_MASK_PICTURE_H_

#include <string>
#include <vector>

#include "harness/base/html.h"
#include "harness/model/observation.h"
#include "harness/site/cell_evidence.h"

namespace bkm {

// Who attends to whom: a row per query, a column per key, lines between documents. Surplus pairs
// are striped and missing ones dashed, so that the picture does not depend on colour. `id` must be
// unique on its page.
html::Markup MaskPicture(const LayerAttention& attention, const std::vector<int64_t>& documents,
                         const std::string& id);
// The same in a sentence.
std::string MaskPictureText(const LayerAttention& attention, const std::vector<int64_t>& documents);

// "0 to 7", "0, 2, 4": equal layers.
std::string LayersText(const std::vector<int64_t>& layers);

// A strip of the packed batch: the token that was changed, and the tokens whose log-probs moved.
html::Markup ReachStrip(const ObservedReach& reach, const std::vector<int64_t>& documents);
std::string ReachText(const ObservedReach& reach, const std::vector<int64_t>& documents);

}  // namespace bkm

#endif  // HARNESS_SITE_MASK_PICTURE_H_
