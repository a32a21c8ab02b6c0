// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_ENDING_H_
#define HARNESS_MODEL_ENDING_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "harness/base/fields.h"

namespace bkm {

// How a cell ended.
enum class EndingKind {
  kCompleted,
  kRaised,
  kExited,
  kSignalled,
  kTimedOut,
  kLimit,
  kCancelled,
  kLost,
  kForkFailed,
  // Set by the runner for a cell whose process was never started.
  kNoSolution,
  kInstallFailed,
  kDeviceMissing,
  kNotOffered,        // the engine kind has no such layout
  kApiCheck,          // the static check predicts that importing the engine fails
  kMalformed,         // it finished, but what it reported cannot be read
  kTreeNotAllowed,    // a source tree that is never written to disk
  kSourceIncomplete,  // the repository on this machine lacks objects of the tree
  kRequirementNotAllowed,
  kRequirementMalformed,
  kRegistryUnreachable,
};
absl::string_view Name(EndingKind kind);
std::optional<EndingKind> EndingKindFromName(absl::string_view name);

struct ObservedEnding {
  EndingKind kind = EndingKind::kLost;
  std::optional<int64_t> code;
  std::optional<int64_t> signal;
  std::string limit;  // memory, output, processes, events, ...
  bool from_outside = false;
  std::string message;

  // Its message; the name of its kind if it has none.
  std::string told() const;
  // Nothing of the subject has run: its worker died, or could not start it.
  bool is_lost() const;
  // Neither a limit nor anybody outside ended it: it would end so again.
  bool is_its_own() const;
};

void Describe(Fields& fields, ObservedEnding& ending);

}  // namespace bkm

#endif  // HARNESS_MODEL_ENDING_H_
