// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_SPEED_DIFF_H_
#define HARNESS_PUBLISH_SPEED_DIFF_H_

#include <span>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "harness/model/cell_record.h"

namespace bkm {

// The records of one cell in two runs; either may be null. Cells are equal if their AskedTexts are.
struct CellPair {
  std::string asked;  // AskedText
  const CellRecord* before = nullptr;
  const CellRecord* after = nullptr;
};

// A cell whose training steps take longer than in the earlier run.
struct Slowdown {
  std::string asked, label;
  double before = 0, after = 0;  // CellCost::step_seconds
};

// How the speed of cells changed between two runs. Cells of the same versions and packages that
// were measured in both runs (A/A) show how much the machine and chance change it.
struct SpeedDiff {
  int compared = 0;     // cells that are ok and were measured in both runs
  int equal_cells = 0;  // of these: of the same versions and packages
  double usual = 1;     // the median of the equal cells' times, after over before
  double noise = 1;     // the largest factor between one of them and `usual`
  // Cells of other versions that are further from `usual` than the square of `noise`, the worst
  // first. None if there are too few equal cells to tell noise.
  std::vector<Slowdown> slower;
  bool knows_noise() const;
};

SpeedDiff CompareSpeeds(std::span<const CellPair> pairs);

OrderedJson ToJson(const SpeedDiff& diff);
// Lines for a terminal; none if no cell was compared.
std::vector<std::string> SpeedLines(const SpeedDiff& diff);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_SPEED_DIFF_H_
