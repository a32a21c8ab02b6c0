// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_HISTORY_SUSPECTS_H_
#define HARNESS_HISTORY_SUSPECTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "harness/search/history_axis.h"
#include "harness/session/api_session.h"

namespace bkm {

// The commits of the mainline, between the axis' ends, at which the answer of the static check
// changes: the pair begins to fail for certain, or ceases to. The newest first. None where the
// check has nothing to say: a kind without one, a library alone, both subjects moving.
absl::StatusOr<std::vector<int>> FindSuspects(ApiSession& api, const HistoryAxis& axis);

}  // namespace bkm

#endif  // HARNESS_HISTORY_SUSPECTS_H_
