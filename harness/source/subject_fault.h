// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SOURCE_SUBJECT_FAULT_H_
#define HARNESS_SOURCE_SUBJECT_FAULT_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "harness/model/ending.h"

namespace bkm {

// An error that a subject's own content causes is the result of this subject's cells, and never
// ends a run. Such a status carries a stable reason code, which WithContext keeps.

// `status` with the reason code of a subject's fault.
absl::Status FaultySubject(EndingKind ending, absl::Status status);
// The reason code; nullopt for an error that is not a subject's fault.
std::optional<EndingKind> FaultOf(const absl::Status& status);

// A tree that breaks the rules of tree_rules.h.
absl::Status TreeNotAllowed(absl::string_view message);

}  // namespace bkm

#endif  // HARNESS_SOURCE_SUBJECT_FAULT_H_
