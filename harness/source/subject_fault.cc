// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/subject_fault.h"

#include "absl/strings/cord.h"

namespace bkm {
namespace {

constexpr char kPayload[] = "bkm/subject-fault";

}  // namespace

absl::Status FaultySubject(EndingKind ending, absl::Status status) {
  status.SetPayload(kPayload, absl::Cord(Name(ending)));
  return status;
}

std::optional<EndingKind> FaultOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload) return std::nullopt;
  return EndingKindFromName(std::string(*payload));
}

absl::Status TreeNotAllowed(absl::string_view message) {
  return FaultySubject(EndingKind::kTreeNotAllowed, absl::InvalidArgumentError(message));
}

}  // namespace bkm
