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

// The verdict on a cell that did not finish.
struct Stop {
  VerdictKind kind = VerdictKind::kBroken;
  Stage stage = Stage::kImport;
  std::string reason;
  std::string message;
  bool operator==(const Stop&) const = default;
};

// nullopt if the cell finished. The rules:
// - The worker, the machine or a person ended the cell: spurious. So is the first timeout: the cell
//   is then run again alone, and a second timeout is `broken`.
// - A signal or an exit from inside, or one of the cell's own limits: `broken`.
// - An exception: `refused` if it is a clear refusal (exception_reason.h), else `broken`. An
//   exception raised by the harness's own code is `unsupported`, unless the adapter imports a
//   module of a subject that does not exist.
// - An exception by which an adapter says that what the subject returned has an impossible shape:
//   `wrong`.
// - An exception that asks for other hardware than the CPU that the cell was given, or that only
//   eager code raises where the subject asked for a compiled region: `unsupported`.
// - The asked backend was replaced, and the exception is about the replacement: `broken`,
//   override-ignored.
//
// Subjects cannot stop at `backend` or `mask`, which are checks of the judge. A cell that stops
// while their witnesses are collected stopped in the forward pass.
std::optional<Stop> ClassifyEnding(const Observation& observation, const Probe& probe);

}  // namespace bkm

#endif  // HARNESS_JUDGE_ENDING_H_
