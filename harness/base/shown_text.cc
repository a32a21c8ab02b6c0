// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/shown_text.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace bkm {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD

struct Range {
  uint32_t first, last;
};
// Beyond C0, in ascending order.
constexpr Range kHidden[] = {
    {0x7F, 0x9F},        // DEL and C1
    {0xAD, 0xAD},        // soft hyphen
    {0x34F, 0x34F},      // grapheme joiner
    {0x61C, 0x61C},      // Arabic letter mark
    {0x115F, 0x1160},    // Hangul fillers
    {0x17B4, 0x17B5},    // Khmer vowels without a glyph
    {0x180B, 0x180F},    // Mongolian selectors and separator
    {0x200B, 0x200F},    // zero width; left-to-right and right-to-left marks
    {0x2028, 0x202E},    // line and paragraph separator; embeddings and overrides
    {0x2060, 0x206F},    // invisible operators; isolates
    {0x3164, 0x3164},    // Hangul filler
    {0xD800, 0xDFFF},    // surrogates
    {0xFDD0, 0xFDEF},    // noncharacters
    {0xFE00, 0xFE0F},    // variation selectors
    {0xFEFF, 0xFEFF},    // byte order mark
    {0xFFA0, 0xFFA0},    // Hangul filler
    {0xFFF0, 0xFFFB},    // interlinear annotation
    {0x1BCA0, 0x1BCA3},  // shorthand controls
    {0x1D173, 0x1D17A},  // musical controls
    {0xE0000, 0xE0FFF},  // tags and more variation selectors
};

}  // namespace

Utf8Character DecodeUtf8(absl::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(at);
  if (first < 0x80) return {1, first};
  const size_t bytes = first >= 0xF0 && first < 0xF5 ? 4
                       : first >= 0xE0               ? 3
                       : first >= 0xC2               ? 2
                                                     : 0;
  if (bytes == 0 || first >= 0xF5 || at + bytes > text.size()) return {};
  uint32_t code = first & (0xFF >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(at + i) & 0x3F);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  if (code < kLeast[bytes] || code > 0x10FFFF || surrogate) return {};
  return {bytes, code};
}

bool IsShown(uint32_t code) {
  if (code == '\n' || code == '\t') return true;
  if (code < 0x20) return false;
  if ((code & 0xFFFE) == 0xFFFE) return false;  // the last two of each plane
  const auto range =
      std::lower_bound(std::begin(kHidden), std::end(kHidden), code,
                       [](const Range& one, uint32_t value) { return one.last < value; });
  return range == std::end(kHidden) || code < range->first;
}

std::string ShownText(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Character character = DecodeUtf8(text, at);
    if (character.bytes == 1 && (character.code < 0x20 || character.code == 0x7F)) {
      out += character.code == '\n' ? '\n' : ' ';
    } else if (character.bytes == 0 || !IsShown(character.code)) {
      out += kReplacement;
    } else {
      out.append(text.data() + at, character.bytes);
    }
    at += character.bytes == 0 ? 1 : character.bytes;
  }
  return out;
}

std::string ShownLine(absl::string_view text) {
  std::string line;
  bool is_space = true;  // nothing before the first word
  for (const char c : ShownText(text)) {
    const bool was_space = std::exchange(is_space, c == ' ' || c == '\n');
    if (!is_space) {
      line += c;
    } else if (!was_space) {
      line += ' ';
    }
  }
  if (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

std::string MarkdownText(absl::string_view text) {
  std::string line;  // without characters that are not shown
  for (size_t at = 0; at < text.size();) {
    const Utf8Character character = DecodeUtf8(text, at);
    const size_t bytes = std::max<size_t>(1, character.bytes);
    if (character.bytes == 0 || !IsShown(character.code)) {
      line += kReplacement;
    } else {
      line.append(text.data() + at, bytes);
    }
    at += bytes;
  }
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const char next = i + 1 < line.size() ? line[i + 1] : '\0';
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '\n' || c == '\t') {
      out += ' ';
    } else if (absl::string_view("\\`*_[]|~$").find(c) != absl::string_view::npos) {
      out += '\\';
      out += c;
    } else if (c == '@' && absl::ascii_isalnum(next)) {
      out += "\uFF20";  // GitHub makes a mention or an address of the ASCII one, even if escaped
    } else if (c == '#' && absl::ascii_isdigit(next)) {
      out += "\uFF03";  // the same for the number of an issue
    } else {
      // An address is a link only if nothing is escaped in ":/" and "www.".
      const bool address =
          (c == ':' && next == '/') ||
          (c == '.' && i >= 3 && absl::EqualsIgnoreCase(line.substr(i - 3, 3), "www"));
      if (address || (out.empty() && absl::string_view("#-+=").find(c) != absl::string_view::npos))
        out += '\\';
      out += c;
    }
  }
  // "1. " and "1) " begin a list.
  const size_t digits = out.find_first_not_of("0123456789");
  const bool is_list = digits > 0 && digits < out.size() &&
                       (out[digits] == '.' || out[digits] == ')') &&
                       (digits + 1 == out.size() || out[digits + 1] == ' ');
  if (is_list) out.insert(digits, 1, '\\');
  return out;
}

std::string MarkdownCode(absl::string_view text) {
  return absl::StrCat("`", absl::StrReplaceAll(ShownLine(text), {{"`", "'"}, {"|", "\\|"}}), "`");
}

std::string EscapedJson(std::string json) {
  // A dump has escaped C0; what remains to be escaped is DEL or starts with a byte of UTF-8.
  const auto is_plain = [](char c) { return static_cast<uint8_t>(c) < 0x7F; };
  if (std::all_of(json.begin(), json.end(), is_plain)) return json;
  std::string out;
  out.reserve(json.size() + json.size() / 8);
  for (size_t at = 0; at < json.size();) {
    const Utf8Character character = DecodeUtf8(json, at);
    const size_t bytes = std::max<size_t>(1, character.bytes);
    if (character.bytes == 0) {
      out += kReplacement;
    } else if (character.code < 0x7F || IsShown(character.code)) {
      out.append(json, at, bytes);
    } else if (character.code < 0x10000) {
      out += absl::StrFormat("\\u%04x", character.code);
    } else {
      const uint32_t code = character.code - 0x10000;
      out += absl::StrFormat("\\u%04x\\u%04x", 0xD800 + (code >> 10), 0xDC00 + (code & 0x3FF));
    }
    at += bytes;
  }
  return out;
}

}  // namespace bkm
