// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_JUDGE_H_
#define HARNESS_JUDGE_JUDGE_H_

#include "harness/judge/case_file.h"
#include "harness/model/verdict.h"

namespace bkm {

// Precedence: a cell that did not finish is classed by its ending (ending.h), with earlier
// mismatches as findings. A cell that finished is `wrong` if a claim fails; of several that fail,
// the verdict names the one that explains most, and Verdict::findings has all of them first. Else
// `unsupported` at the first stage whose facts are missing or unreadable; else `ok`. Each claim
// that applies (claims.h) has a finding. Reads only the cell's step files.
Verdict Judge(const JudgeInput& input);

}  // namespace bkm

#endif  // HARNESS_JUDGE_JUDGE_H_
