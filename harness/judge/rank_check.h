// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_RANK_CHECK_H_
#define HARNESS_JUDGE_RANK_CHECK_H_

#include "harness/judge/backend_check.h"
#include "harness/judge/check_result.h"
#include "harness/model/layout.h"
#include "harness/model/observation.h"

namespace bkm {

// Whether all ranks took part, each with its documents and the asked attention, and hold the same
// bits of what they share: gathered gradients and parameters, and log-probs of the same documents.
// Rank 0's attention is judged by CheckBackend itself. Passes for one rank.
CheckResult CheckRanks(const Observation& observation, const Layout& layout,
                       const AskedAttention& asked, size_t steps);

}  // namespace bkm

#endif  // HARNESS_JUDGE_RANK_CHECK_H_
