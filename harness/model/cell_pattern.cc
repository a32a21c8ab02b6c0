// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/cell_pattern.h"

#include <fnmatch.h>

#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace bkm {
namespace {

constexpr char kGlobCharacters[] = "*?[]";

bool IsReserved(char c) {
  return absl::ascii_iscntrl(static_cast<unsigned char>(c)) ||
         absl::string_view(",%\\").find(c) != absl::string_view::npos ||
         absl::string_view(kGlobCharacters).find(c) != absl::string_view::npos;
}

std::string Escaped(char c) { return absl::StrFormat("%%%02X", static_cast<unsigned char>(c)); }

// The byte that the escape at text[i] stands for.
std::optional<char> UnescapedAt(absl::string_view text, size_t i) {
  const auto is_hex = [](char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); };
  if (i + 2 >= text.size() || text[i] != '%' || !is_hex(text[i + 1]) || !is_hex(text[i + 2]))
    return std::nullopt;
  return absl::HexStringToBytes(text.substr(i + 1, 2))[0];
}

// A pattern in the spelling of EscapedText. Bytes in `kept` stay as they are unless the pattern
// escapes them.
std::string Normalized(absl::string_view pattern, absl::string_view kept) {
  std::string text;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (const std::optional<char> c = UnescapedAt(pattern, i)) {
      // Lists and names of options escape '+' and ':' too.
      const bool stays = IsReserved(*c) || *c == '+' || *c == ':';
      absl::StrAppend(&text, stays ? Escaped(*c) : std::string(1, *c));
      i += 2;
    } else {
      const bool stays = !IsReserved(pattern[i]) || kept.find(pattern[i]) != kept.npos;
      absl::StrAppend(&text, stays ? std::string(1, pattern[i]) : Escaped(pattern[i]));
    }
  }
  return text;
}

}  // namespace

std::string EscapedText(absl::string_view text, absl::string_view more) {
  std::string escaped;
  for (const char c : text) {
    if (IsReserved(c) || more.find(c) != more.npos)
      escaped += Escaped(c);
    else
      escaped += c;
  }
  return escaped;
}

std::string UnescapedText(absl::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::optional<char> c = UnescapedAt(text, i);
    plain += c.value_or(text[i]);
    if (c) i += 2;
  }
  return plain;
}

CellPattern::CellPattern(absl::string_view text)
    : text_(text), literal_(Normalized(text, "")), glob_(Normalized(text, kGlobCharacters)) {}

bool CellPattern::Matches(const std::string& escaped) const {
  return literal_ == escaped || ::fnmatch(glob_.c_str(), escaped.c_str(), 0) == 0;
}

}  // namespace bkm
