// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REPORT_STORY_H_
#define HARNESS_REPORT_STORY_H_

#include <string>

#include "harness/base/json.h"
#include "harness/model/cell_record.h"

namespace bkm {

// Everything about one cell, for people: the request, the stages, the observation, and the verdict
// with its evidence. `observation` is null if the cell was not measured.
std::string StoryText(const CellRecord& cell, const Json& observation, const Verdict& verdict);

}  // namespace bkm

#endif  // HARNESS_REPORT_STORY_H_
