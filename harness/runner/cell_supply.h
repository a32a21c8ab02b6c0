// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_CELL_SUPPLY_H_
#define HARNESS_RUNNER_CELL_SUPPLY_H_

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/runner/task.h"

namespace bkm {

// The cells of a run, each as soon as it is ready to run.
class CellSupply {
 public:
  struct Ready {
    std::optional<size_t> index;  // in records(); absent: a further cell, at the end of the run
    PreparedCell cell;
  };
  virtual ~CellSupply() = default;
  // The cells that are known from the beginning, in their order in the run. What is only known of a
  // ready cell is missing: the lock, a library's version.
  virtual std::vector<CellRecord> records() const = 0;
  // The cells that have become ready since the last call, without waiting for any. Cells of one
  // worker become ready together. After an error, no further cell does.
  virtual absl::StatusOr<std::vector<Ready>> Take() = 0;
  // Whether all cells were taken.
  virtual bool done() const = 0;
};

// Cells that are ready from the beginning.
class ReadyCells : public CellSupply {
 public:
  explicit ReadyCells(std::vector<PreparedCell> cells) : cells_(std::move(cells)) {}

  std::vector<CellRecord> records() const override {
    std::vector<CellRecord> records;
    for (const PreparedCell& cell : cells_) records.push_back(cell.record);
    return records;
  }
  absl::StatusOr<std::vector<Ready>> Take() override {
    std::vector<Ready> ready;
    for (size_t i = 0; i < cells_.size() && !done_; ++i) ready.push_back({i, cells_[i]});
    done_ = true;
    return ready;
  }
  bool done() const override { return done_; }

 private:
  const std::vector<PreparedCell> cells_;
  bool done_ = false;
};

}  // namespace bkm

#endif  // HARNESS_RUNNER_CELL_SUPPLY_H_
