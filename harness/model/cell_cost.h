// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_CELL_COST_H_
#define HARNESS_MODEL_CELL_COST_H_

#include "harness/base/fields.h"
#include "harness/base/json.h"

namespace bkm {

// What a cell took. 0: unknown.
struct CellCost {
  double seconds = 0;  // wall time of the cell
  // The subject's own speed: the median of its training steps' wall times in seconds, without what
  // bkm samples, and without the first step, which warms up.
  double step_seconds = 0;
  double peak_mib = 0;  // the largest resident memory of one of the cell's processes
  bool operator==(const CellCost&) const = default;
};

// From observation.json (harness/protocol/README.md). What is missing or no time is unknown.
CellCost CostOf(const Json& observation);

void DescribeCost(Fields& fields, CellCost& cost);

}  // namespace bkm

#endif  // HARNESS_MODEL_CELL_COST_H_
