// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/report/numbers_story.h"

#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/judge/numbers_check.h"

namespace bkm {
namespace {

// "3.1 floors"; a floor of 0 has no multiples.
std::string Floors(const std::optional<double>& multiple) {
  return multiple && std::isfinite(*multiple) ? absl::StrFormat("%.1f floors", *multiple)
                                              : std::string("infinitely many floors");
}

std::string QuantityLine(const char* name, const QuantityFacts& quantity) {
  std::string line = absl::StrCat("  ", name, ": ", Floors(quantity.multiple));
  const std::string where = quantity.tensor.empty() ? "" : quantity.tensor + ", ";
  if (quantity.step) absl::StrAppend(&line, " (", where, "step ", *quantity.step + 1, ")");
  if (quantity.allowed) absl::StrAppendFormat(&line, ", allowed: %.0f", *quantity.allowed);
  return line + "\n";
}

std::string WorstTokenLine(const NumbersFacts& facts) {
  if (!facts.worst_token || !std::isfinite(facts.worst_token->error.value_or(NAN))) return "";
  const WorstToken& token = *facts.worst_token;
  const QuantityFacts* largest = facts.Find("log_probs_max");
  return absl::StrFormat(
      "  worst token: %d (document %d, position %d) in step %d, log-prob off by %.3g from %.4g, "
      "%s\n",
      token.position.value_or(-1), token.document.value_or(-1),
      token.document_position.value_or(-1), token.step.value_or(-1) + 1, *token.error,
      token.golden.value_or(0), Floors(largest ? largest->multiple : std::nullopt));
}

}  // namespace

std::string NumbersStory(const Verdict& verdict) {
  const Finding* numbers = verdict.Find("numbers");
  const auto facts = FactsOf<NumbersFacts>(numbers);
  std::string lines;
  for (const NumbersQuantity& quantity : NumbersQuantities()) {
    if (const QuantityFacts* found = facts.Find(quantity.key))
      lines += QuantityLine(quantity.name, *found);
  }
  if (lines.empty()) return "";
  if (facts.allowed_multiple)
    absl::StrAppendFormat(&lines, "  allowed: %.0f floors\n", *facts.allowed_multiple);
  lines += WorstTokenLine(facts);
  if (verdict.diagnosis) {
    absl::StrAppend(&lines, "  diagnosis: the log-probs of the wrong answer \"",
                    verdict.diagnosis->answer, "\", ", Floors(verdict.diagnosis->multiple),
                    " away\n");
  } else if (numbers->outcome == ClaimOutcome::kFailed) {
    absl::StrAppend(&lines, "  diagnosis: none of the predicted wrong answers\n");
  }
  return lines;
}

}  // namespace bkm
