// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/diagnosis.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "harness/judge/numbers_check.h"

namespace bkm {
namespace {

// The name of the right answer among the predicted ones.
constexpr char kRight[] = "right";

}  // namespace

std::optional<Diagnosis> Diagnose(std::span<const double> log_probs,
                                  const std::map<std::string, std::vector<double>>& predicted,
                                  const PackedBatch& batch, double floor) {
  std::optional<Diagnosis> nearest;
  for (const auto& [name, answer] : predicted) {
    if (answer.size() != log_probs.size() || answer.size() != batch.input_ids.size()) continue;
    const double error = batch.MeanDifference(log_probs, answer);
    // Negated so that NaN does not match.
    if (!(error <= kFloorMultiple * floor)) continue;
    if (!nearest || error < nearest->error)
      nearest = {.answer = name, .error = error, .multiple = InFloors(error, floor)};
  }
  return nearest;
}

std::optional<Diagnosis> NearerThanRight(
    std::span<const double> log_probs, const std::vector<double>& right,
    const std::map<std::string, std::vector<double>>& predicted, const PackedBatch& batch,
    double floor) {
  std::map<std::string, std::vector<double>> answers = {{kRight, right}};
  for (const auto& [name, answer] : predicted) {
    if (answer.size() == right.size() && answer.size() == batch.input_ids.size() &&
        batch.MeanDifference(right, answer) >= kLeastSeparation * floor)
      answers.emplace(name, answer);
  }
  const std::optional<Diagnosis> nearest = Diagnose(log_probs, answers, batch, floor);
  return nearest && nearest->answer != kRight ? nearest : std::nullopt;
}

std::string Describe(const Diagnosis& diagnosis) {
  return absl::StrFormat("its log-probs are those of \"%s\" (%.1f floors from that answer)",
                         absl::StrReplaceAll(diagnosis.answer, {{"-", " "}}), diagnosis.multiple);
}

}  // namespace bkm
