// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CLI_OUTCOME_H_
#define HARNESS_CLI_OUTCOME_H_

#include "harness/model/cell_record.h"

namespace bkm {

// 0 once every cell has a verdict that is not spurious; 1 when some are spurious or flaky; 3 when
// some were not measured.
int ExitCodeOf(const RunRecord& run);

}  // namespace bkm

#endif  // HARNESS_CLI_OUTCOME_H_
