// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_RANK_VIEW_H_
#define HARNESS_SITE_RANK_VIEW_H_

#include <string>

#include "harness/base/html.h"
#include "harness/model/layout.h"
#include "harness/site/cell_evidence.h"

namespace bkm {

// "1 rank", or "dp_shard=2+tp=2: 4 ranks, 2 of them data-parallel".
std::string LayoutSentence(const Layout& layout);

// What each rank of a cell did, how ranks differ, and their collectives; empty for one rank.
html::Markup RanksSection(const CellEvidence& evidence);

}  // namespace bkm

#endif  // HARNESS_SITE_RANK_VIEW_H_
