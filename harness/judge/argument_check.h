// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_ARGUMENT_CHECK_H_
#define HARNESS_JUDGE_ARGUMENT_CHECK_H_

#include <vector>

#include "harness/judge/check_result.h"
#include "harness/judge/kernel_calls.h"
#include "harness/model/observation.h"
#include "harness/model/probe.h"

namespace bkm {

// Whether a GPU would compute the same with the arguments of each attention call. On a CPU
// stand-ins run that do not need all of them: flex follows the mask function and not the block
// table, and varlen computes every token whatever maximum it is told. Calls of flash_attn's
// functions must also be what the model, and `documents` (those of the calls, in each step), need.
// Of several ranks, the first one's calls are in `observation` itself.
CheckResult CheckArguments(const Probe& asked, const Observation& observation,
                           const std::vector<DocumentLengths>& documents = {});

// A rank's share of the documents of each step, up to the first step in which it did not say which
// it has, or said what cannot be. A trainer deals them as it likes; an engine gets neighbours of
// the step's.
std::vector<DocumentLengths> DocumentsOf(const Probe& probe, const Observation& seen,
                                         const ObservedRank& rank,
                                         const std::vector<DocumentLengths>& of_all);

}  // namespace bkm

#endif  // HARNESS_JUDGE_ARGUMENT_CHECK_H_
