// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_CELL_JUDGE_H_
#define HARNESS_RUNNER_CELL_JUDGE_H_

#include <optional>

#include "absl/status/statusor.h"
#include "harness/base/json.h"
#include "harness/model/cell_record.h"
#include "harness/model/observation.h"
#include "harness/runner/task.h"

namespace bkm {

// Judges the cells of a run while it goes on. Goldens and floors that are missing are computed in
// the background, in slots that cells would use.
class CellJudge {
 public:
  virtual ~CellJudge() = default;
  // Called with each observation before its cell is judged.
  virtual absl::Status Observe(const PreparedCell& cell, const Observation& seen) = 0;
  // The verdict of an observed cell. Absent while a golden or floor is still being computed.
  virtual absl::StatusOr<std::optional<Verdict>> Judge(const CellRecord& cell) = 0;
  // Called often: collects background work that has ended, starts more while it occupies fewer than
  // `slots`, and returns how many it occupies now.
  virtual int Advance(int slots) = 0;
};

}  // namespace bkm

#endif  // HARNESS_RUNNER_CELL_JUDGE_H_
