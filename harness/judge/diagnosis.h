// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_DIAGNOSIS_H_
#define HARNESS_JUDGE_DIAGNOSIS_H_

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/numerics/packed_batch.h"

namespace bkm {

// A wrong answer that the reference predicted, and that a cell gave.
struct Diagnosis {
  std::string answer;   // its name in the golden file: "causal-across-documents"
  double error = 0;     // mean |difference| of log-probs over judged tokens, in nats
  double multiple = 0;  // of the floor
  bool operator==(const Diagnosis&) const = default;
};

// The predicted answer that `log_probs` equal: the nearest one, if it is within kFloorMultiple
// floors. An answer to a wrong question, computed rightly, rounds like the right one, so the floor
// of the golden holds for it too. `predicted` holds log-probs [tokens] by name; one of another
// length equals nothing, nor do log-probs that are not finite where they are judged.
std::optional<Diagnosis> Diagnose(std::span<const double> log_probs,
                                  const std::map<std::string, std::vector<double>>& predicted,
                                  const PackedBatch& batch, double floor);

// For a message: its log-probs are those of "causal across documents".
std::string Describe(const Diagnosis& diagnosis);

}  // namespace bkm

#endif  // HARNESS_JUDGE_DIAGNOSIS_H_
