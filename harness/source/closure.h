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

// What a cell looked at in one subject's tree, as paths below it (harness/protocol/README.md,
// "closure"). All are sorted.
struct TreeClosure {
  std::vector<std::string> read;  // files, there or not; folders whose names were read end in "/"
  std::vector<std::string> lookups;  // modules that the import system looked for: "verl/workers"
  std::vector<std::string> asked;    // paths that were asked for and not read
  bool operator==(const TreeClosure&) const = default;
};

// What a cell depends on in both its trees. Of a subject without a tree there is nothing.
struct Closure {
  TreeClosure engine;
  TreeClosure library;
  std::vector<std::string> escapes;  // what the record does not see: programs that were started
  bool whole = false;                // the cell lived to say that this is all

  // An observation stands for another cell only if its record misses nothing.
  bool tells_all() const { return whole && escapes.empty(); }
  bool operator==(const Closure&) const = default;
};

// Of an observation's "closure"; one that is not there, or of an older form, is not whole.
absl::StatusOr<Closure> ClosureFromJson(const Json& json, const std::string& origin);

// The trees' part as one line of JSON: equal texts, equal dependences.
std::string DependenceText(const Closure& closure);
absl::StatusOr<Closure> ClosureFromDependenceText(const std::string& text);

// SHA-256 of what everything in `closure` is in `listing`: a cell that looked at these things in
// two trees with equal states saw the same.
std::string StateOf(const TreeClosure& closure, const TreeListing& listing);

}  // namespace bkm

#endif  // HARNESS_SOURCE_CLOSURE_H_
