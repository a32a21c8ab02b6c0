// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_ASKED_CELL_H_
#define HARNESS_MODEL_ASKED_CELL_H_

#include <string>

#include "harness/model/cell.h"

namespace bkm {

// The cell's id with versions as the user wrote them, not as they were resolved: a cell of a branch
// keeps this text when the branch moves. It is a filter that matches the cell.
std::string AskedText(const Cell& cell);

}  // namespace bkm

#endif  // HARNESS_MODEL_ASKED_CELL_H_
