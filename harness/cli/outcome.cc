// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cli/outcome.h"

#include <algorithm>

#include "harness/cli/command.h"
#include "harness/judge/reasons.h"

namespace bkm {

int ExitCodeOf(const RunRecord& run) {
  int code = kExitAsExpected;
  for (const CellRecord& cell : run.cells) {
    if (!cell.verdict) return kExitInterrupted;
    if (cell.is_flaky() || cell.verdict->kind == VerdictKind::kSpurious)
      code = std::max(code, kExitVerdictsDiffer);
    if (cell.verdict->reason == reason::kHarnessError) code = kExitHarnessError;
  }
  return code;
}

}  // namespace bkm
