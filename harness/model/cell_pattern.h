// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_CELL_PATTERN_H_
#define HARNESS_MODEL_CELL_PATTERN_H_

#include <string>

#include "absl/strings/string_view.h"

namespace bkm {

// A value as cell ids spell it: %XX stands for each byte that separates fields (','), is special in
// a glob ("*?[]\\"), is '%' or a control character, or is in `more`.
std::string EscapedText(absl::string_view text, absl::string_view more = "");

// The inverse.
std::string UnescapedText(absl::string_view text);

// A value in a filter: a shell glob over escaped texts, in which %XX stands for one literal byte. A
// pattern that equals a value without escapes matches that value, whatever glob characters it has.
class CellPattern {
 public:
  explicit CellPattern(absl::string_view text);
  bool Matches(const std::string& escaped) const;
  // As the user wrote it.
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::string literal_;  // with its glob characters escaped
  std::string glob_;
};

}  // namespace bkm

#endif  // HARNESS_MODEL_CELL_PATTERN_H_
