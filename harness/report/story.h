// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REPORT_STORY_H_
#define HARNESS_REPORT_STORY_H_

#include <string>

#include "harness/base/json.h"
#include "harness/model/cell_record.h"

namespace bkm {

// The whole story of one cell for a person: what was asked, how far it came, what was seen, what
// the judge says and why. `observation` is null when the cell was not measured; `verdict` holds the
// evidence.
std::string StoryText(const CellRecord& cell, const Json& observation, const Verdict& verdict);

}  // namespace bkm

#endif  // HARNESS_REPORT_STORY_H_
