// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_EXPERT_BALANCE_CHECK_H_
#define HARNESS_JUDGE_EXPERT_BALANCE_CHECK_H_

#include <cstdint>
#include <span>
#include <vector>

#include "harness/judge/check_result.h"
#include "harness/model/observation.h"

namespace bkm {

// By how much the bias of each expert has to move after a step in which `tokens` were given to
// them: `coefficient` towards those below the mean, away from those above it, less the mean of all
// (Wang et al. 2024, arXiv:2408.15664; centred as torchtitan's register_moe_load_balancing_hook
// does).
std::vector<double> BalancedBy(std::span<const int64_t> tokens, double coefficient);

// Whether they did in each step.
CheckResult CheckExpertBalance(std::span<const ObservedStep> steps);

}  // namespace bkm

#endif  // HARNESS_JUDGE_EXPERT_BALANCE_CHECK_H_
