// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MATRIX_COVER_H_
#define HARNESS_MATRIX_COVER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "harness/matrix/plan.h"

namespace bkm {

// Some cells of a plan that together hold every combination of `strength` values.
struct Cover {
  int strength = 2;
  int64_t cells = 0;         // that could run
  int64_t kept = 0;          // that are kept
  int64_t combinations = 0;  // of `strength` values, all of them in a kept cell
  // Combinations of `strength` + 1 values: in any cell, and in a kept one. What the others do is
  // unknown. 0 where there are too many to count.
  int64_t larger = 0;
  int64_t larger_kept = 0;
};

// Rows of values, such as the fields of cells; all have the same number of columns.
using ValueRows = std::vector<std::vector<std::string>>;

// The places of rows that together hold every combination of `strength` (1 to 3) values that any
// row holds: a covering array whose constraint is that each row exists. Rows in front are
// preferred. Greedy set cover (Johnson, Approximation algorithms for combinatorial problems, 1974),
// evaluated lazily (Minoux, 1978). Ascending.
std::vector<size_t> CoveringRows(const ValueRows& rows, int strength);

// Excludes the cells that CoveringRows leaves out, with the reason. Cells that are excluded, or
// known to be unsupported, stay as they are and cover nothing.
Cover ApplyCover(int strength, std::vector<PlannedCell>& plan);

// Cells saved, what is covered, and what stays unknown.
std::string CoverText(const Cover& cover);
OrderedJson CoverJson(const Cover& cover);

}  // namespace bkm

#endif  // HARNESS_MATRIX_COVER_H_
