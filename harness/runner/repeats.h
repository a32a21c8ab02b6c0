// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_REPEATS_H_
#define HARNESS_RUNNER_REPEATS_H_

#include <vector>

#include "harness/model/cell_record.h"
#include "harness/runner/task.h"

namespace bkm {

// Each cell `runs` times: behind the cells come their repeats, cells of their own with `repeat` 2
// and more. A cell that stopped before it could run is what it is, and has none.
std::vector<PreparedCell> WithRepeats(std::vector<PreparedCell> cells, int runs);

// The repeats of `cell` in `run`.
std::vector<const CellRecord*> RepeatsOf(const RunRecord& run, const CellRecord& cell);

// What `first` and its repeats show together; drift is left out. Where their verdicts differ the
// cell is flaky, and its verdict the worst of them, never a plain ok: the message says how often
// each was seen. Verdicts that say nothing (spurious, or not there) are left out.
struct StableVerdict {
  Verdict verdict;
  Stability stability;
};
StableVerdict Together(const CellRecord& first, const std::vector<const CellRecord*>& repeats);

}  // namespace bkm

#endif  // HARNESS_RUNNER_REPEATS_H_
