// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_ENDING_H_
#define HARNESS_JUDGE_ENDING_H_

#include <optional>
#include <string>

#include "harness/model/observation.h"
#include "harness/model/probe.h"
#include "harness/model/verdict.h"

namespace bkm {

// How a cell that did not finish is classed.
struct Stop {
  VerdictKind kind = VerdictKind::kBroken;
  Stage stage = Stage::kImport;
  std::string reason;
  std::string message;
  bool operator==(const Stop&) const = default;
};

// nullopt: the cell ran to its end. The rules:
// - The worker, the machine or a person ended it: spurious. The first timeout, too: it is run again
//   alone, and a second one is `broken`.
// - A signal or an exit from inside, or the cell's own limits: `broken`.
// - An exception: `refused` when it is a clear refusal (exception_reason.h), else `broken`; raised
//   by the harness's own code: `unsupported`, unless what the harness imports is a module of a
//   subject that does not exist.
// - An exception that asks for other hardware than the CPU it was given: `unsupported`.
// - The asked backend was replaced by another, and the replacement is what the exception is about:
//   `broken`, override-ignored.
// A subject cannot stop at `backend` or `mask`, which are the judge's checks: what stops while
// their evidence is collected stops the forward pass.
std::optional<Stop> ClassifyEnding(const Observation& observation, const Probe& probe);

}  // namespace bkm

#endif  // HARNESS_JUDGE_ENDING_H_
