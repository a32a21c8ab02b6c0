// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_RANK_CHECK_H_
#define HARNESS_JUDGE_RANK_CHECK_H_

#include <functional>
#include <optional>

#include "harness/judge/backend_check.h"
#include "harness/judge/check_result.h"
#include "harness/judge/kernel_calls.h"
#include "harness/model/observation.h"
#include "harness/model/probe.h"

namespace bkm {

// The largest difference between two ranks in floors of the quantity; nullopt where it has none, or
// another shape.
using DifferenceInFloors = std::function<std::optional<double>(const ObservedRankDifference&)>;

// Whether all ranks took part, each with its documents, the asked attention and the precision of
// rank 0, and hold the same bits of what they share: gathered gradients and parameters, and
// log-probs of the same documents. Rank 0's attention is judged by CheckBackend and CheckArguments
// themselves. `documents`: those of each step, of all ranks. Passes for one rank.
CheckResult CheckRanks(
    const Observation& observation, const Probe& probe, const AskedAttention& asked,
    const std::vector<DocumentLengths>& documents = {},
    const DifferenceInFloors& floors = [](const auto&) { return std::nullopt; });

}  // namespace bkm

#endif  // HARNESS_JUDGE_RANK_CHECK_H_
