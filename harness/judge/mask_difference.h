// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_MASK_DIFFERENCE_H_
#define HARNESS_JUDGE_MASK_DIFFERENCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "harness/judge/relation.h"

namespace bkm {

// How the relation of one layer differs from the right one; the most serious fault first.
enum class MaskFault {
  kOtherDocument,  // sees other documents
  kFuture,         // sees later tokens of its own document
  kBoundary,       // only document boundaries are wrong, by one token
  kWindow,         // only the width of the window is wrong
  kTooWide,        // sees further back than the window, irregularly
  kShort,          // does not see everything that it should
  kNone,
};
// The name used in evidence: "window", "boundary", ...
absl::string_view Name(MaskFault fault);

struct MaskDifference {
  MaskFault fault = MaskFault::kNone;
  int64_t window = 0;      // kWindow: the observed width in tokens; 0: no window
  int64_t extra = 0;       // (query, key) pairs that are seen and should not be
  int64_t missing = 0;     // pairs that should be seen and are not
  bool is_mutual = false;  // two documents see each other, each the other
  std::string example;     // "token 41 (...) sees token 36 (...)"
};

// `window` is that of RightRelation. A regular fault (boundary, window) takes precedence; otherwise
// the fault is the most serious one of any pair.
MaskDifference Compare(const Relation& seen, const PackedDocuments& documents, int64_t window);

// One line per document of queries, one character per document of keys: '.' sees nothing, '\\' a
// causal triangle, '#' everything, '+' anything else.
std::vector<std::string> Picture(const Relation& seen, const PackedDocuments& documents);

}  // namespace bkm

#endif  // HARNESS_JUDGE_MASK_DIFFERENCE_H_
