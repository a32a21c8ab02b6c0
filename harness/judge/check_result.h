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

enum class CheckOutcome {
  kPassed,
  kFailed,      // the cell did not do what was asked: `wrong`
  kUnseen,      // the fact was not observed: the check cannot decide
  kUnreadable,  // a file that the check needs is missing or corrupt: it cannot decide
};

// One place at which a check failed: a tensor, a step, a layer.
struct FailedPlace {
  std::string where;  // "step 2, model.norm.weight"
  std::string what;   // a sentence
  // The error in units of what is allowed, which are floors for numbers; absent where it is no
  // matter of more or less, or infinitely much.
  std::optional<double> size = {};
};

// The result of one check of a cell. `evidence` holds the numbers that were compared, whatever the
// outcome.
struct CheckResult {
  CheckOutcome outcome = CheckOutcome::kPassed;
  Stage stage = Stage::kGolden;  // the stage that the check belongs to
  std::string reason;            // empty when passed
  std::string message;
  Json evidence = Json::object();
  // Of a failure: every place, the worst first. Empty: `message` says it all.
  std::vector<FailedPlace> places = {};
  // Other claims of the same check that failed.
  std::vector<CheckResult> further = {};

  // Sorts and keeps the places of a failure.
  CheckResult At(std::vector<FailedPlace> where) &&;
  // That of the worst place; absent if it is no matter of more or less.
  std::optional<double> size() const { return places.empty() ? std::nullopt : places.front().size; }

  static CheckResult Passed(Stage stage, Json evidence = Json::object()) {
    return {CheckOutcome::kPassed, stage, "", "", std::move(evidence)};
  }
  static CheckResult Failed(Stage stage, const char* reason, std::string message,
                            Json evidence = Json::object()) {
    return {CheckOutcome::kFailed, stage, reason, std::move(message), std::move(evidence)};
  }
  static CheckResult Unseen(Stage stage, std::string message, Json evidence = Json::object()) {
    return {CheckOutcome::kUnseen, stage, reason::kWitnessMissing, std::move(message),
            std::move(evidence)};
  }
  // The subject has no way to be asked: nothing is wrong, and nothing is proven.
  static CheckResult NotOffered(Stage stage, std::string message, Json evidence = Json::object()) {
    return {CheckOutcome::kUnseen, stage, reason::kNotOffered, std::move(message),
            std::move(evidence)};
  }
  static CheckResult Unreadable(Stage stage, const absl::Status& status) {
    return {CheckOutcome::kUnreadable, stage, reason::kEvidenceUnreadable,
            std::string(status.message()), Json::object()};
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
