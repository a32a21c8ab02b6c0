// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_SENSITIVITY_H_
#define HARNESS_JUDGE_SENSITIVITY_H_

#include <cmath>
#include <compare>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "harness/judge/step_files.h"

namespace bkm {

// Whether a cell computes and reports these in fp32 in every step. In bf16, they may be further
// away.
struct ReportTypes {
  bool fp32_log_probs = false;
  bool fp32_loss = false;
  auto operator<=>(const ReportTypes&) const = default;
};

// The smallest errors that the check of numbers reports: as many floors as it allows, each in the
// step in which that is smallest. A lasting fault shows in every step. Infinite for what no step
// compares.
struct Sensitivity {
  double log_probs_mean = INFINITY;  // nats, mean over judged tokens
  double log_probs_max = INFINITY;   // nats, of one token
  double loss = INFINITY;            // relative
  double total_norm = INFINITY;      // relative
  // Relative, by tensor. From 1 on the check is blind: even a gradient of zero is within four
  // floors. Without tensors whose gradient is zero in the golden.
  std::map<std::string, double> gradients;

  size_t BlindGradients() const;
  // The middle one; infinite without gradients.
  double MedianGradient() const;
  // The largest, with the tensor's name; "" without gradients.
  std::pair<std::string, double> WorstGradient() const;
};

// `golden` and `floor` have one element per step. `average_multiple`: how many floors the mean
// error of log-probs may be away.
Sensitivity SensitivityOf(std::span<const GoldenStep> golden, std::span<const FloorStep> floor,
                          double average_multiple, const ReportTypes& types);

}  // namespace bkm

#endif  // HARNESS_JUDGE_SENSITIVITY_H_
