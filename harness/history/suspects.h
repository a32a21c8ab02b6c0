// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_HISTORY_SUSPECTS_H_
#define HARNESS_HISTORY_SUSPECTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "harness/history/api_session.h"
#include "harness/search/history_axis.h"

namespace bkm {

// The commits of the mainline between the axis' ends at which the result of the static check
// changes: certain failures begin or end there. Newest first. Empty where the check does not apply:
// an engine kind without a check, a library alone, or an axis that moves both subjects.
absl::StatusOr<std::vector<int>> FindSuspects(ApiSession& api, const HistoryAxis& axis);

}  // namespace bkm

#endif  // HARNESS_HISTORY_SUSPECTS_H_
