// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_REPEATS_H_
#define HARNESS_RUNNER_REPEATS_H_

#include <vector>

#include "harness/model/cell_record.h"
#include "harness/runner/task.h"

namespace bkm {

// Appends the repeats of the cells, so that each runs `runs` times. Repeats are cells of their own,
// with `repeat` 2 and more. A cell that was stopped before it ran is not repeated.
std::vector<PreparedCell> WithRepeats(std::vector<PreparedCell> cells, int runs);

// The repeats of `cell` in `run`.
std::vector<const CellRecord*> RepeatsOf(const RunRecord& run, const CellRecord& cell);

// The verdict of `first` and its repeats together, without drift. If their verdicts differ, the
// cell is flaky and gets the worst verdict, whose message says how often each occurred. Spurious
// and missing verdicts are left out.
struct StableVerdict {
  Verdict verdict;
  Stability stability;
};
StableVerdict Together(const CellRecord& first, const std::vector<const CellRecord*>& repeats);

}  // namespace bkm

#endif  // HARNESS_RUNNER_REPEATS_H_
