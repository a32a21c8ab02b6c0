// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_HISTORY_PEEL_SIGHT_H_
#define HARNESS_HISTORY_PEEL_SIGHT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/runner/run_directory.h"
#include "harness/search/peel.h"

namespace bkm {

// The outcome of a judged cell, in the form that a search for stacked culprits compares.
absl::StatusOr<PeelSight> ReadSight(const RunDirectory& directory, const CellRecord& cell);

// The part of an exception's message that is the same in every version of the library: free
// numbers become '#', and lists in brackets or braces are dropped.
std::string StableText(absl::string_view message);

}  // namespace bkm

#endif  // HARNESS_HISTORY_PEEL_SIGHT_H_
