// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REPORT_ATTENTION_STORY_H_
#define HARNESS_REPORT_ATTENTION_STORY_H_

#include <string>

#include "harness/base/json.h"

namespace bkm {

// What was observed of a cell's attention, as indented lines: the modules built, functions called
// and kernels dispatched, the masks that reached it with their owners, and who attends to whom.
// `mask_check` is the evidence of the judge's mask check, or null.
std::string AttentionStory(const Json& observation, const Json& mask_check);

}  // namespace bkm

#endif  // HARNESS_REPORT_ATTENTION_STORY_H_
