// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CLI_OUTCOME_H_
#define HARNESS_CLI_OUTCOME_H_

#include "harness/model/cell_record.h"

namespace bkm {

// 0: every cell has a verdict; 1: some cells are spurious or flaky; 2: in some cells our own code
// failed (harness-error); 3: some cells have no verdict.
int ExitCodeOf(const RunRecord& run);

}  // namespace bkm

#endif  // HARNESS_CLI_OUTCOME_H_
