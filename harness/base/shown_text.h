// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BASE_SHOWN_TEXT_H_
#define HARNESS_BASE_SHOWN_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

// Text of subjects (messages, names, labels) on its way to a person. Every output of bkm goes
// through one of these functions, so that no text can move a terminal's cursor, reverse the
// direction of what follows, hide characters or begin a line of its own.
namespace bkm {

// One character of UTF-8: its length in bytes and its code point. 0 bytes: not UTF-8.
struct Utf8Character {
  size_t bytes = 0;
  uint32_t code = 0;
};
Utf8Character DecodeUtf8(absl::string_view text, size_t at);

// False for control characters (C0, DEL, C1) except newline and tab, line and paragraph separators,
// characters that change the text's direction, characters without width, and noncharacters.
bool IsShown(uint32_t code);

// `text` for a terminal or a file for people: DEL and each C0 control character but newline become
// a space; any other character that is not shown, and each byte that is not UTF-8, becomes U+FFFD.
std::string ShownText(absl::string_view text);
// The same in one line: runs of white space become one space.
std::string ShownLine(absl::string_view text);

// `text` as one line of Markdown that shows it as it is: no HTML, link, image, emphasis, mention,
// new row of a table or block. Safe at the begin of a line, in a list and in a cell of a table.
std::string MarkdownText(absl::string_view text);

// `text` as code in one line of Markdown. Meant for codes and ids; a backquote becomes a quote.
std::string MarkdownCode(absl::string_view text);

// JSON text with each character that is not shown written as \uXXXX. The value stays the same.
std::string EscapedJson(std::string json);

}  // namespace bkm

#endif  // HARNESS_BASE_SHOWN_TEXT_H_
