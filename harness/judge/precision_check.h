// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_PRECISION_CHECK_H_
#define HARNESS_JUDGE_PRECISION_CHECK_H_

#include <string>

#include "harness/judge/check_result.h"
#include "harness/model/observation.h"

namespace bkm {

// Whether the asked precision ran: "bf16" or "fp32". Witnesses are the autocast or the type of the
// attention's input, in the witness forward pass and in each attention call of every training step,
// and the type of each matrix product that the backward passes of a step go through. A product may
// be in fp32 although bf16 was asked for: routers are. Another precision is precision-ignored. A
// cell without these witnesses is unseen.
CheckResult CheckPrecision(const Observation& observation, const std::string& asked);

}  // namespace bkm

#endif  // HARNESS_JUDGE_PRECISION_CHECK_H_
