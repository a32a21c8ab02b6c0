// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REFERENCE_PREDICTED_H_
#define HARNESS_REFERENCE_PREDICTED_H_

#include <map>
#include <string>
#include <vector>

#include "harness/reference/golden.h"

namespace bkm {

// The log-probs of step 0 that known faults would give, by the fault's name. An observation close
// to one of them has that fault. Kept are only answers that differ from the right one by 1e-4 nats
// a token on average, which is sixteen floors of fp32. A judge at a lower precision must also
// compare with the right answer: a dropped window moves only the tokens beyond it, 0.04 nats a
// token on average or two floors of bf16. For a critic: its values, and 1e-4 in their unit.
std::map<std::string, std::vector<double>> PredictedAnswers(const LoadedProbe& probe,
                                                            const StepFacts& golden);

}  // namespace bkm

#endif  // HARNESS_REFERENCE_PREDICTED_H_
