// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REFERENCE_PREDICTED_H_
#define HARNESS_REFERENCE_PREDICTED_H_

#include <map>
#include <string>
#include <vector>

#include "harness/reference/golden.h"

namespace bkm {

// The log-probs of step 0 that known faults would give, by the fault's name: an observation that is
// close to one of them has that fault. Only those that differ from the right ones by 1e-4 nats a
// token on average, sixteen floors of fp32: a judge at a lower precision first compares a predicted
// answer with the right one (a dropped window moves the few tokens that stand beyond it, 0.04 nats
// a token on average, two floors of bf16). Of a critic: its values, and 1e-4 of their unit.
std::map<std::string, std::vector<double>> PredictedAnswers(const LoadedProbe& probe,
                                                            const StepFacts& golden);

}  // namespace bkm

#endif  // HARNESS_REFERENCE_PREDICTED_H_
