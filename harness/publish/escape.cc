// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/escape.h"

#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace bkm {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD

// The length of the first character of `text`; 0 if it is not UTF-8 or XML 1.0 forbids it
// (https://www.w3.org/TR/xml/#charsets).
size_t CharacterLength(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return first >= 0x20 || first == '\t' || first == '\n' ? 1 : 0;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  uint32_t code = first & (0xFF >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3F);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool is_surrogate = code >= 0xD800 && code < 0xE000;
  return overlong || is_surrogate || code > 0x10FFFF || code == 0xFFFE || code == 0xFFFF ? 0
                                                                                         : length;
}

// `text` in UTF-8 without control characters.
std::string Clean(absl::string_view text) {
  std::string clean;
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    if (length == 0) {
      absl::StrAppend(&clean, kReplacement);
    } else {
      absl::StrAppend(&clean, text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return clean;
}

}  // namespace

std::string XmlText(absl::string_view text) {
  return absl::StrReplaceAll(
      Clean(text),
      {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string MarkdownText(absl::string_view text) {
  return absl::StrReplaceAll(Clean(text), {{"&", "&amp;"},
                                           {"<", "&lt;"},
                                           {">", "&gt;"},
                                           {"|", "\\|"},
                                           {"\\", "\\\\"},
                                           {"`", "\\`"},
                                           {"*", "\\*"},
                                           {"_", "\\_"},
                                           {"[", "\\["},
                                           {"]", "\\]"},
                                           {"\n", " "},
                                           {"\t", " "}});
}

std::string CsvField(absl::string_view text) {
  std::string field = Clean(text);
  if (!field.empty() && absl::StrContains("=+-@\t", field.substr(0, 1))) field = "'" + field;
  if (field.find_first_of(",\"\n") == std::string::npos) return field;
  return absl::StrCat("\"", absl::StrReplaceAll(field, {{"\"", "\"\""}}), "\"");
}

}  // namespace bkm
