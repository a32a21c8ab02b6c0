// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REPORT_ATTENTION_STORY_H_
#define HARNESS_REPORT_ATTENTION_STORY_H_

#include <string>

#include "harness/base/json.h"
#include "harness/judge/mask_check.h"

namespace bkm {

// What was observed of a cell's attention, as indented lines: the modules built, functions called
// and kernels dispatched, the masks that reached it with their owners, and who attends to whom.
// `facts` are those of the judge's mask check.
std::string AttentionStory(const Json& observation, const MaskFacts& facts);

}  // namespace bkm

#endif  // HARNESS_REPORT_ATTENTION_STORY_H_
