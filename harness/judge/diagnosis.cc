// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/diagnosis.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "harness/judge/numbers_check.h"

namespace bkm {

std::optional<Diagnosis> Diagnose(std::span<const double> log_probs,
                                  const std::map<std::string, std::vector<double>>& predicted,
                                  const PackedBatch& batch, double floor) {
  const std::vector<int64_t> judged = batch.JudgedPositions();
  std::optional<Diagnosis> nearest;
  for (const auto& [name, answer] : predicted) {
    if (answer.size() != log_probs.size() || answer.size() != batch.input_ids.size()) continue;
    double sum = 0;
    for (const int64_t t : judged) sum += std::abs(log_probs[t] - answer[t]);
    const double error = sum / static_cast<double>(judged.size());
    // Negated so that NaN does not match.
    if (!(error <= kFloorMultiple * floor)) continue;
    if (!nearest || error < nearest->error)
      nearest = {.answer = name, .error = error, .multiple = InFloors(error, floor)};
  }
  return nearest;
}

std::string Describe(const Diagnosis& diagnosis) {
  return absl::StrFormat("its log-probs are those of \"%s\" (%.1f floors from that answer)",
                         absl::StrReplaceAll(diagnosis.answer, {{"-", " "}}), diagnosis.multiple);
}

}  // namespace bkm
