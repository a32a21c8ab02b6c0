// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_CHECK_RESULT_H_
#define HARNESS_JUDGE_CHECK_RESULT_H_

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "harness/base/json.h"
#include "harness/judge/reasons.h"
#include "harness/model/verdict.h"

namespace bkm {

// The result of one check of a cell: a finding, whose facts hold what was compared, whatever the
// outcome.
struct CheckResult : Finding {
  // Other claims of the same check that failed.
  std::vector<CheckResult> further = {};

  // Sorts and keeps the places of a failure.
  CheckResult At(std::vector<FailedPlace> where) &&;
  // That of the worst place; absent if it is not a matter of more or less.
  std::optional<double> size() const { return places.empty() ? std::nullopt : places.front().size; }

  static CheckResult Passed(Stage stage, Json facts = Json::object()) {
    return Of(ClaimOutcome::kPassed, stage, "", "", std::move(facts));
  }
  static CheckResult Failed(Stage stage, const char* reason, std::string message,
                            Json facts = Json::object()) {
    return Of(ClaimOutcome::kFailed, stage, reason, std::move(message), std::move(facts));
  }
  static CheckResult Unseen(Stage stage, std::string message, Json facts = Json::object()) {
    return Of(ClaimOutcome::kUnseen, stage, reason::kWitnessMissing, std::move(message),
              std::move(facts));
  }
  // The subject has no way to be asked: nothing is wrong, and nothing is proven.
  static CheckResult NotOffered(Stage stage, std::string message, Json facts = Json::object()) {
    return Of(ClaimOutcome::kUnseen, stage, reason::kNotOffered, std::move(message),
              std::move(facts));
  }
  static CheckResult Unreadable(Stage stage, const absl::Status& status) {
    return Of(ClaimOutcome::kUnreadable, stage, reason::kEvidenceUnreadable,
              std::string(status.message()), Json::object());
  }

 private:
  static CheckResult Of(ClaimOutcome outcome, Stage stage, const char* reason, std::string message,
                        Json facts) {
    return {Finding{.outcome = outcome,
                    .stage = stage,
                    .reason = reason,
                    .message = std::move(message),
                    .facts = std::move(facts)}};
  }
};

inline CheckResult CheckResult::At(std::vector<FailedPlace> where) && {
  // What has no size comes first: it is not a little off.
  std::stable_sort(where.begin(), where.end(), [](const FailedPlace& a, const FailedPlace& b) {
    if (a.size.has_value() != b.size.has_value()) return !a.size.has_value();
    return a.size.value_or(0) > b.size.value_or(0);
  });
  places = std::move(where);
  return std::move(*this);
}

}  // namespace bkm

#endif  // HARNESS_JUDGE_CHECK_RESULT_H_
