// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REPORT_FIND_CELL_H_
#define HARNESS_REPORT_FIND_CELL_H_

#include <string>

#include "absl/status/statusor.h"
#include "harness/model/cell_record.h"

namespace bkm {

// The one cell of `run` that `name` means: its id, its folder's name or the start of one, or a
// filter that one cell matches.
absl::StatusOr<const CellRecord*> FindCell(const RunRecord& run, const std::string& name);

}  // namespace bkm

#endif  // HARNESS_REPORT_FIND_CELL_H_
