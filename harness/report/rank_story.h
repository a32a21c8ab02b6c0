// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REPORT_RANK_STORY_H_
#define HARNESS_REPORT_RANK_STORY_H_

#include <string>

#include "harness/base/json.h"

namespace bkm {

// What each rank did and which collectives the first rank called, as indented lines; empty for one
// rank.
std::string RankStory(const Json& observation);

}  // namespace bkm

#endif  // HARNESS_REPORT_RANK_STORY_H_
