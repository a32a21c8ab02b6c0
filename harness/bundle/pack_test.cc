// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/bundle/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "harness/base/files.h"
#include "harness/model/plant.h"

namespace bkm {
namespace {

// How many cells are planned of a run whose one cell has these plants, or the error.
absl::StatusOr<size_t> PlannedOf(std::vector<std::string> plant) {
  const RunDirectory directory(*CreateTempDirectory(::testing::TempDir(), "run"));
  CellRecord record;
  record.dir = "cells/x";
  record.lock = std::string(64, 'a');
  record.cell.engine = "torchtitan";
  record.cell.plant = std::move(plant);
  record.id = CellId(record.cell);
  const absl::Status written = directory.WriteRun({.matrix = "m", .cells = {record}});
  if (!written.ok()) return written;
  const auto plan = PlanOfRun(directory, {});
  if (!plan.ok()) return plan.status();
  return plan->size();
}

TEST(PackTest, APlantedCellIsPackedAndAMutantIsNot) {
  EXPECT_EQ(*PlannedOf({}), 1u);
  EXPECT_EQ(*PlannedOf({"drop-mask"}), 1u);
  EXPECT_THAT(PlannedOf({std::string(kMutantPrefix) + "a.py:1:drop-term:0"}).status().ToString(),
              ::testing::HasSubstr("has changed sources, which are not packed"));
}

}  // namespace
}  // namespace bkm
