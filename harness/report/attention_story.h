// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REPORT_ATTENTION_STORY_H_
#define HARNESS_REPORT_ATTENTION_STORY_H_

#include <string>

#include "harness/base/json.h"

namespace bkm {

// What was seen of a cell's attention, as indented lines: what was built, called and dispatched,
// which masks reached it and whose they are, and who attends to whom. `mask_check` is the evidence
// of the judge's mask check, null where there is none.
std::string AttentionStory(const Json& observation, const Json& mask_check);

}  // namespace bkm

#endif  // HARNESS_REPORT_ATTENTION_STORY_H_
