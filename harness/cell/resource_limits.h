// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_RESOURCE_LIMITS_H_
#define HARNESS_CELL_RESOURCE_LIMITS_H_

#include "absl/status/status.h"
#include "harness/cell/cell_request.h"

namespace bkm {

// In the forked cell: sets the limits that the kernel enforces. They are above the watchdog's and
// only catch a cell that grows faster than the watchdog checks.
absl::Status ApplyResourceLimits(const CellRequest& request);

}  // namespace bkm

#endif  // HARNESS_CELL_RESOURCE_LIMITS_H_
