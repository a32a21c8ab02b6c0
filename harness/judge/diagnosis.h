// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_DIAGNOSIS_H_
#define HARNESS_JUDGE_DIAGNOSIS_H_

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/model/verdict.h"
#include "harness/numerics/packed_batch.h"

namespace bkm {

// The predicted answer closest to `log_probs`, if it is within kFloorMultiple floors. The floor of
// the golden applies to predicted answers too, because they round in the same way. `predicted`
// holds log-probs [tokens] by name. Answers of another length and log-probs that are not finite at
// judged positions never match.
std::optional<Diagnosis> Diagnose(std::span<const double> log_probs,
                                  const std::map<std::string, std::vector<double>>& predicted,
                                  const PackedBatch& batch, double floor);

// Right cells are at most 1.2 floors from the golden (README.md), and not all towards one answer.
inline constexpr double kLeastSeparation = 1.25;

// The predicted answer that `log_probs` are nearer to than to the `right` ones, by the mean
// |difference|; nullopt if the right ones are nearest. Tells faults apart that the floor hides: the
// rounding of a right cell moves its tokens in all directions, and not towards one wrong answer.
// Answers that are less than kLeastSeparation floors from the right one are left out.
std::optional<Diagnosis> NearerThanRight(
    std::span<const double> log_probs, const std::vector<double>& right,
    const std::map<std::string, std::vector<double>>& predicted, const PackedBatch& batch,
    double floor);

// A clause for the verdict's message: its log-probs are those of "causal across documents" ...
std::string Describe(const Diagnosis& diagnosis);

}  // namespace bkm

#endif  // HARNESS_JUDGE_DIAGNOSIS_H_
