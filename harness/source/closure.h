// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SOURCE_CLOSURE_H_
#define HARNESS_SOURCE_CLOSURE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/json.h"
#include "harness/source/tree_listing.h"

namespace bkm {

// The paths below one subject's tree that a cell looked at (harness/protocol/README.md, "closure").
// Every list is sorted.
struct TreeClosure {
  // Files that were opened, whether or not they exist, and folders that were listed, with a "/" at
  // the end.
  std::vector<std::string> read;
  std::vector<std::string> lookups;  // modules that the import system looked for: "verl/workers"
  std::vector<std::string> asked;    // paths whose existence or type was queried, but not read
  bool operator==(const TreeClosure&) const = default;
};

// The parts of both trees that a cell depends on. Empty for a subject without a tree.
struct Closure {
  TreeClosure engine;
  TreeClosure library;
  std::vector<std::string>
      escapes;         // what the recorder cannot see into: programs that were started
  bool whole = false;  // the cell lived long enough to report that the record is final

  // Only an observation whose record misses nothing may be reused for another cell.
  bool tells_all() const { return whole && escapes.empty(); }
  bool operator==(const Closure&) const = default;
};

// Reads an observation's "closure". A closure that is missing or in an older form is not whole.
absl::StatusOr<Closure> ClosureFromJson(const Json& json, const std::string& origin);

// Both trees' part as one line of JSON. Equal texts mean equal dependences.
std::string DependenceText(const Closure& closure);
absl::StatusOr<Closure> ClosureFromDependenceText(const std::string& text);

// SHA-256 of the content that `listing` has for everything in `closure`. In two trees with equal
// states a cell sees the same.
std::string StateOf(const TreeClosure& closure, const TreeListing& listing);

}  // namespace bkm

#endif  // HARNESS_SOURCE_CLOSURE_H_
