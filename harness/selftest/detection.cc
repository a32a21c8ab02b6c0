// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/selftest/detection.h"

#include <algorithm>
#include <limits>

#include "harness/judge/numbers_check.h"

namespace bkm {
namespace {

bool Accepts(const Expectation& expectation, absl::string_view reason) {
  return std::find(expectation.reasons.begin(), expectation.reasons.end(), reason) !=
         expectation.reasons.end();
}

// The largest multiple of a floor among the quantities that may name this fault.
std::optional<double> MarginOf(const Verdict& verdict, const Expectation& expectation) {
  const auto numbers = FactsOf<NumbersFacts>(verdict.Find("numbers"));
  std::optional<double> margin;
  for (const NumbersQuantity& quantity : NumbersQuantities()) {
    const QuantityFacts* found = numbers.Find(quantity.key);
    if (found == nullptr || !Accepts(expectation, quantity.reason)) continue;
    // A missing multiple means a floor of 0, from which every error is infinitely far.
    const double multiple = found->multiple.value_or(std::numeric_limits<double>::infinity());
    margin = std::max(margin.value_or(0), multiple);
  }
  return margin;
}

// Which answer is nearest does not depend on how wide the floor is. Another fault's answer proves
// nothing about this one.
bool IsNamed(const CatalogueFault& fault, const Verdict& verdict) {
  return !fault.answer.empty() && verdict.diagnosis && verdict.diagnosis->answer == fault.answer;
}

DetectionOutcome OutcomeOf(const CatalogueFault* fault, const CellRecord& cell,
                           const std::optional<double>& margin) {
  const Verdict& verdict = *cell.verdict;
  // The harness could not plant the fault, or the machine failed: nothing is proven.
  if (verdict.kind == VerdictKind::kSpurious || verdict.kind == VerdictKind::kUnsupported)
    return DetectionOutcome::kUnmeasured;
  const bool is_ok = verdict.kind == VerdictKind::kOk;
  if (fault == nullptr || fault->is_harmless)
    return is_ok ? DetectionOutcome::kAsExpected : DetectionOutcome::kFalseRed;
  if (fault->InvisibleIn(cell.cell) != nullptr)
    return is_ok ? DetectionOutcome::kAsExpected : DetectionOutcome::kStale;
  if (is_ok) return DetectionOutcome::kEscaped;
  const Expectation* expectation = fault->ExpectationFor(cell.cell);
  const bool as_listed = expectation != nullptr && verdict.kind == expectation->verdict &&
                         verdict.stage == expectation->stage &&
                         Accepts(*expectation, verdict.reason);
  if (!as_listed) return DetectionOutcome::kWrongReason;
  const bool needs_margin =
      fault->is_numeric && !IsNamed(*fault, verdict) && fault->ThinIn(cell.cell) == nullptr;
  return needs_margin && margin.value_or(0) < kLeastMargin ? DetectionOutcome::kWeak
                                                           : DetectionOutcome::kAsExpected;
}

void SetLimit(const CatalogueFault& fault, const Cell& cell, Detection& detection) {
  const WeakSpot* invisible = fault.InvisibleIn(cell);
  const WeakSpot* spot = invisible != nullptr ? invisible : fault.ThinIn(cell);
  if (spot == nullptr) return;
  detection.limit = invisible != nullptr ? "invisible" : "thin";
  detection.why = spot->why;
}

}  // namespace

absl::string_view Name(DetectionOutcome outcome) {
  switch (outcome) {
    case DetectionOutcome::kAsExpected:
      return "as expected";
    case DetectionOutcome::kEscaped:
      return "ESCAPED";
    case DetectionOutcome::kStale:
      return "STALE";
    case DetectionOutcome::kWrongReason:
      return "WRONG REASON";
    case DetectionOutcome::kWeak:
      return "WEAK";
    case DetectionOutcome::kFalseRed:
      return "FALSE RED";
    case DetectionOutcome::kUnmeasured:
      return "UNMEASURED";
  }
  return "";
}

Detection Assess(const CatalogueFault* fault, const CellRecord& cell) {
  Detection detection{.fault = fault ? fault->id : "",
                      .engine = cell.cell.engine,
                      .attention = cell.cell.probe.attention,
                      .model = cell.cell.probe.model,
                      .drive = cell.cell.probe.drive};
  if (fault) SetLimit(*fault, cell.cell, detection);
  if (!cell.verdict) return detection;
  const Verdict& verdict = *cell.verdict;
  detection.verdict = std::string(Name(verdict.kind));
  detection.stage = std::string(Name(verdict.stage));
  detection.reason = verdict.reason;
  if (const Finding* decides = verdict.Deciding()) detection.check = decides->claim;
  detection.message = verdict.message;
  const Expectation* expectation = fault ? fault->ExpectationFor(cell.cell) : nullptr;
  if (fault && fault->is_numeric && expectation) detection.margin = MarginOf(verdict, *expectation);
  detection.outcome = OutcomeOf(fault, cell, detection.margin);
  return detection;
}

}  // namespace bkm
