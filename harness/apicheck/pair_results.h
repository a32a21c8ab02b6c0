// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_PAIR_RESULTS_H_
#define HARNESS_APICHECK_PAIR_RESULTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/apicheck/api_check.h"
#include "harness/apicheck/versions.h"
#include "harness/base/json.h"
#include "harness/model/engine_kind.h"

namespace bkm {

// What the static check says of one engine version with one library version. Refers to both.
struct PairResult {
  const CheckedVersion& engine;
  const CheckedVersion& library;
  PairGrade grade;
  std::vector<Violation> violations;
};

// The one kind of the engines "[KIND@]SPEC"; removes "KIND@" from them. An error for a kind without
// a static check, and for engines of different kinds.
absl::StatusOr<const EngineKind*> TakeKind(std::vector<std::string>& engines);

// Every engine with every library, engine by engine.
absl::StatusOr<std::vector<PairResult>> CheckPairs(ApiCheck& check,
                                                   const std::vector<CheckedVersion>& engines,
                                                   const std::vector<CheckedVersion>& libraries);

Json ToJson(const EngineKind& kind, const std::vector<PairResult>& pairs);

}  // namespace bkm

#endif  // HARNESS_APICHECK_PAIR_RESULTS_H_
