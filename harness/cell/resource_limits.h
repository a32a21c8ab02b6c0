// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_RESOURCE_LIMITS_H_
#define HARNESS_CELL_RESOURCE_LIMITS_H_

#include "absl/status/status.h"
#include "harness/cell/cell_request.h"

namespace bkm {

// In the forked cell: what the kernel enforces by itself. These lie above what the watchdog
// measures, and only catch a cell that grows faster than it looks.
absl::Status ApplyResourceLimits(const CellRequest& request);

}  // namespace bkm

#endif  // HARNESS_CELL_RESOURCE_LIMITS_H_
