// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/escape.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "harness/base/shown_text.h"

namespace bkm {
namespace {

constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// `text` in UTF-8, without characters that are not shown; XML 1.0 forbids some of them.
std::string Clean(absl::string_view text) {
  std::string clean;
  for (size_t at = 0; at < text.size();) {
    const Utf8Character character = DecodeUtf8(text, at);
    const bool shown = character.bytes > 0 && IsShown(character.code);
    const size_t bytes = character.bytes == 0 ? 1 : character.bytes;
    absl::StrAppend(&clean, shown ? text.substr(at, bytes) : kReplacement);
    at += bytes;
  }
  return clean;
}

}  // namespace

std::string XmlText(absl::string_view text) {
  return absl::StrReplaceAll(
      Clean(text),
      {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string CsvField(absl::string_view text) {
  // Programs that split a file into lines first would take a line end for a new row.
  std::string field = absl::StrReplaceAll(Clean(text), {{"\n", " "}, {"\t", " "}});
  if (!field.empty() && absl::StrContains("=+-@", field.substr(0, 1))) field = "'" + field;
  if (field.find_first_of(",\"") == std::string::npos) return field;
  return absl::StrCat("\"", absl::StrReplaceAll(field, {{"\"", "\"\""}}), "\"");
}

}  // namespace bkm
