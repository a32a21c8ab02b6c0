// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_CELL_FEED_H_
#define HARNESS_RUNNER_CELL_FEED_H_

#include <vector>

#include "absl/status/statusor.h"
#include "harness/model/cell_record.h"
#include "harness/runner/task.h"

namespace bkm {

// Chooses the cells of a run by the verdicts so far.
class CellFeed {
 public:
  virtual ~CellFeed() = default;
  // Called while slots are free: at most `room` more cells. Returning no cells while nothing is
  // running, pending or unjudged ends the run.
  virtual absl::StatusOr<std::vector<PreparedCell>> Next(int room) = 0;
  // Called once for each cell, when its verdict depends on no golden or floor that is still being
  // computed. Blame may still change.
  virtual absl::Status Judged(const CellRecord& cell) = 0;
};

// For a run whose cells are all known at its start.
class NoFeed : public CellFeed {
 public:
  absl::StatusOr<std::vector<PreparedCell>> Next(int) override {
    return std::vector<PreparedCell>();
  }
  absl::Status Judged(const CellRecord&) override { return absl::OkStatus(); }
};

}  // namespace bkm

#endif  // HARNESS_RUNNER_CELL_FEED_H_
