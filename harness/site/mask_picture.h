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

// Who attends to whom: a row per query, a column per key, lines between documents. Pairs that are
// as asked, pairs too many (striped) and pairs that are missing (dashed) differ in more than
// colour. `id` is unique on its page.
html::Markup MaskPicture(const LayerAttention& attention, const std::vector<int64_t>& documents,
                         const std::string& id);
// The same in a sentence.
std::string MaskPictureText(const LayerAttention& attention, const std::vector<int64_t>& documents);

// "0 to 7", "0, 2, 4": layers that do the same.
std::string LayersText(const std::vector<int64_t>& layers);

// One token was changed: which tokens' log-probs moved, as a strip of the packed batch.
html::Markup ReachStrip(const ObservedReach& reach, const std::vector<int64_t>& documents);
std::string ReachText(const ObservedReach& reach, const std::vector<int64_t>& documents);

}  // namespace bkm

#endif  // HARNESS_SITE_MASK_PICTURE_H_
