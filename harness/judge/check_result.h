// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_CHECK_RESULT_H_
#define HARNESS_JUDGE_CHECK_RESULT_H_

#include <string>
#include <utility>

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

// The result of one check of a cell. `evidence` holds the numbers that were compared, whatever the
// outcome.
struct CheckResult {
  CheckOutcome outcome = CheckOutcome::kPassed;
  Stage stage = Stage::kGolden;  // the stage that the check belongs to
  std::string reason;            // empty when passed
  std::string message;
  Json evidence = Json::object();

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
  static CheckResult Unreadable(Stage stage, const absl::Status& status) {
    return {CheckOutcome::kUnreadable, stage, reason::kEvidenceUnreadable,
            std::string(status.message()), Json::object()};
  }
};

}  // namespace bkm

#endif  // HARNESS_JUDGE_CHECK_RESULT_H_
