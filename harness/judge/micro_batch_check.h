// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_MICRO_BATCH_CHECK_H_
#define HARNESS_JUDGE_MICRO_BATCH_CHECK_H_

#include <span>

#include "harness/judge/check_result.h"
#include "harness/model/observation.h"
#include "harness/model/probe.h"

namespace bkm {

// Whether each step was cut into the asked micro-batches: a right answer does not show it. Passes
// where the number was not seen (an older worker's observation).
CheckResult CheckMicroBatches(const Probe& asked, std::span<const ObservedStep> reported);

}  // namespace bkm

#endif  // HARNESS_JUDGE_MICRO_BATCH_CHECK_H_
