// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SOURCE_CLOSURE_H_
#define HARNESS_SOURCE_CLOSURE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/json.h"
#include "harness/source/tree_listing.h"

namespace bkm {

// The paths below one subject's tree that a cell looked at (harness/protocol/README.md,
// "observed").
struct TreeClosure {
  // Files and links that were read, and folders that were listed, with a "/" at the end.
  std::vector<std::string> read;
  std::vector<std::string> lookups;  // modules that the import system looked for: "verl/workers"
  std::vector<std::string> asked;    // names that were looked up, whether or not they exist
  bool operator==(const TreeClosure&) const = default;
};

// The parts of both trees that a cell depends on. Empty for a subject without a tree.
struct Closure {
  TreeClosure engine;
  TreeClosure library;
  bool operator==(const Closure&) const = default;
};

// The closure in what a worker observed from outside the cell's processes. Nullopt if `observed` is
// null, or if its record of the trees is missing, incomplete or of another observer: then the cell
// may depend on anything in its trees. Never give it what a cell reported about itself.
absl::StatusOr<std::optional<Closure>> ClosureFromObserved(const Json& observed,
                                                           const std::string& origin);

// Both trees' part as text. Equal texts mean equal dependences.
std::string DependenceText(const Closure& closure);
// DataLoss if this version did not write the text.
absl::StatusOr<Closure> ClosureFromDependenceText(const std::string& text);

// SHA-256 of what `listing` has for everything in `closure`. In two trees with equal states, a cell
// with this closure sees the same.
std::string StateOf(const TreeClosure& closure, const TreeListing& listing);

}  // namespace bkm

#endif  // HARNESS_SOURCE_CLOSURE_H_
