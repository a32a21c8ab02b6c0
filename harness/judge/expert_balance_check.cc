// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/expert_balance_check.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/judge/case_file.h"
#include "harness/judge/claims.h"
#include "harness/judge/reasons.h"

namespace bkm {
namespace {

// Of the coefficient: biases are fp32, and are far less than a thousand coefficients.
constexpr double kBiasTolerance = 1e-3;

}  // namespace

std::vector<double> BalancedBy(std::span<const int64_t> tokens, double coefficient) {
  const auto count = static_cast<double>(tokens.size());
  const double mean = std::accumulate(tokens.begin(), tokens.end(), 0.0) / count;
  std::vector<double> moves;
  for (const int64_t own : tokens) {
    const double below = mean - static_cast<double>(own);
    moves.push_back(coefficient * ((below > 0) - (below < 0)));
  }
  const double centre = std::accumulate(moves.begin(), moves.end(), 0.0) / count;
  for (double& move : moves) move -= centre;
  return moves;
}

CheckResult CheckExpertBalance(std::span<const ObservedStep> steps) {
  std::vector<FailedPlace> places;
  int64_t layers = 0;
  for (size_t k = 0; k < steps.size(); ++k) {
    if (steps[k].experts.size() != steps.front().experts.size())
      return CheckResult::Unseen(Stage::kStep,
                                 absl::StrCat("in step ", k + 1, " ", steps[k].experts.size(),
                                              " layers of experts were seen, and ",
                                              steps.front().experts.size(), " in step 1"));
    for (const ObservedExperts& experts : steps[k].experts) {
      const std::string where = absl::StrCat("step ", k + 1, ", ", experts.layer);
      const bool is_counted = std::any_of(experts.tokens.begin(), experts.tokens.end(),
                                          [](int64_t n) { return n > 0; });
      if (!is_counted || experts.tokens.size() != experts.moved.size())
        return CheckResult::Unseen(
            Stage::kStep, absl::StrCat("in ", where, " nobody saw which experts were chosen"));
      ++layers;
      const std::vector<double> expected = BalancedBy(experts.tokens, experts.coefficient);
      double worst = 0;
      size_t at = 0;
      for (size_t e = 0; e < expected.size(); ++e) {
        const double off = std::abs(experts.moved[e] - expected[e]);
        if (std::isfinite(off) && off <= worst) continue;
        worst = std::isfinite(off) ? off : HUGE_VAL;
        at = e;
      }
      if (worst <= kBiasTolerance * experts.coefficient) continue;
      const bool has_moved = std::any_of(experts.moved.begin(), experts.moved.end(),
                                         [](double move) { return move != 0; });
      places.push_back(
          {where, has_moved
                      ? absl::StrFormat("in %s, the bias of expert %d moved by %.3g instead of "
                                        "%.3g, of %d tokens with %d on it",
                                        where, at, experts.moved[at], expected[at],
                                        std::accumulate(experts.tokens.begin(),
                                                        experts.tokens.end(), int64_t{0}),
                                        experts.tokens[at])
                      : absl::StrCat("in ", where,
                                     ", the experts' biases did not move: their "
                                     "load is not balanced")});
    }
  }
  Json facts = {{"layers", layers}, {"steps", steps.size()}};
  if (places.empty()) return CheckResult::Passed(Stage::kStep, std::move(facts));
  const std::string message = places.front().what;
  return CheckResult::Failed(Stage::kStep, reason::kExpertBiasOff, message, std::move(facts))
      .At(std::move(places));
}

namespace {

bool HasBalancedExperts(const CaseFile& file) {
  const std::vector<ObservedStep>& steps = file.seen().steps;
  return OfFinishedCells(file) &&
         std::any_of(steps.begin(), steps.end(),
                     [](const ObservedStep& step) { return !step.experts.empty(); });
}

CheckResult CheckExpertBalanceOf(const CaseFile& file) {
  return CheckExpertBalance(file.seen().steps);
}

}  // namespace

extern const Claim kExpertBalanceClaim = {
    .name = "expert_balance",
    .rung = Stage::kStep,
    .asked_by = "",
    .says =
        "where the model's configuration balances the load of experts by biases, these move "
        "against the load in every step",
    .witness =
        "which experts each router chose in the training forwards, and the biases before and "
        "after the optimizer's step",
    .cannot_see =
        "what the biases do to the routing, which the numbers show; a coefficient that is not the "
        "configuration's, because it is read from the layer; a rank after the first; layouts in "
        "which ranks share more than the batch; the library alone, whose optimizer is bkm's",
    .applies = HasBalancedExperts,
    .check = CheckExpertBalanceOf,
};

}  // namespace bkm
