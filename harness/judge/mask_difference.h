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

// In what way the relation of one layer is not the right one; the gravest first.
enum class MaskFault {
  kOtherDocument,  // sees other documents
  kFuture,         // sees later tokens of its own document
  kBoundary,       // right but for documents that begin a token too early or too late
  kWindow,         // right but for the width of its window
  kTooWide,        // sees further back than the window, in no regular way
  kShort,          // does not see all that it should
  kNone,
};
// "window", "boundary", ...: for evidence.
absl::string_view Name(MaskFault fault);

struct MaskDifference {
  MaskFault fault = MaskFault::kNone;
  int64_t window = 0;  // kWindow: of this width, in tokens; 0: none
  int64_t extra = 0;   // pairs that see each other and should not
  int64_t missing = 0;
  bool sees_later_documents = false;
  std::string example;  // "token 41 (...) sees token 36 (...)"
};

// `window` as in RightRelation. A relation with a regular fault (a boundary, a window) has that
// one; any other has the gravest that one of its pairs shows.
MaskDifference Compare(const Relation& seen, const PackedDocuments& documents, int64_t window);

// A line per document of queries with a character per document of keys: nothing '.', a causal
// triangle '\\', everything '#', something else '+'.
std::vector<std::string> Picture(const Relation& seen, const PackedDocuments& documents);

}  // namespace bkm

#endif  // HARNESS_JUDGE_MASK_DIFFERENCE_H_
