// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_MICRO_BATCH_CHECK_H_
#define HARNESS_JUDGE_MICRO_BATCH_CHECK_H_

#include <span>

#include "harness/judge/check_result.h"
#include "harness/model/observation.h"
#include "harness/model/probe.h"

namespace bkm {

// Whether each step ran the asked number of micro-batches, which right numbers do not show. Unseen
// if a step's number was not observed.
CheckResult CheckMicroBatches(const Probe& asked, std::span<const ObservedStep> reported);

}  // namespace bkm

#endif  // HARNESS_JUDGE_MICRO_BATCH_CHECK_H_
