// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RAY_CELL_SERVER_H_
#define HARNESS_RAY_CELL_SERVER_H_

#include "absl/status/status.h"
#include "harness/runner/installation.h"

namespace bkm {

// Runs cells of one runtime on this machine for a bkm on another one: JSON lines on stdin and
// stdout (README.md), until stdin ends. What it cannot do, it says there: an error means that it
// could not even do that.
absl::Status ServeCells(const Installation& installation);

}  // namespace bkm

#endif  // HARNESS_RAY_CELL_SERVER_H_
