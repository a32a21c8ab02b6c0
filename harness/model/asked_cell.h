// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_ASKED_CELL_H_
#define HARNESS_MODEL_ASKED_CELL_H_

#include <string>

#include "harness/model/cell.h"

namespace bkm {

// The cell as the user asked for it, in the filter grammar: versions as they were written, not what
// they came to, so that a cell of a branch that moved is the same cell. As a filter it means this
// cell alone among those of a matrix.
std::string AskedText(const Cell& cell);

}  // namespace bkm

#endif  // HARNESS_MODEL_ASKED_CELL_H_
