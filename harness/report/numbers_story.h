// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REPORT_NUMBERS_STORY_H_
#define HARNESS_REPORT_NUMBERS_STORY_H_

#include <string>

#include "harness/model/verdict.h"

namespace bkm {

// How far a cell's numbers are from the golden, as indented lines: each quantity in floors, the
// worst token with its document and position, and the predicted wrong answer that the cell gave, if
// any. Empty if no numbers were compared.
std::string NumbersStory(const Verdict& verdict);

}  // namespace bkm

#endif  // HARNESS_REPORT_NUMBERS_STORY_H_
