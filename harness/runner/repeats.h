// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_REPEATS_H_
#define HARNESS_RUNNER_REPEATS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "harness/model/cell_record.h"
#include "harness/runner/cell_supply.h"
#include "harness/runner/task.h"

namespace bkm {

// Appends the repeats of the cells, so that each runs `runs` times. Repeats are cells of their own,
// with `repeat` 2 and more. A cell that was stopped before it ran is not repeated.
std::vector<PreparedCell> WithRepeats(std::vector<PreparedCell> cells, int runs);

// The cells of another supply, followed by their repeats.
class RepeatedCells : public CellSupply {
 public:
  RepeatedCells(CellSupply& cells, int runs) : cells_(cells), runs_(runs) {}

  std::vector<CellRecord> records() const override { return cells_.records(); }
  absl::StatusOr<std::vector<Ready>> Take() override;
  bool done() const override { return done_; }
  // What was taken: once all was, the cells in their order and then the repeats.
  const std::vector<PreparedCell>& cells() const { return taken_; }

 private:
  CellSupply& cells_;
  const int runs_;
  std::vector<PreparedCell> taken_;
  bool done_ = false;
};

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
