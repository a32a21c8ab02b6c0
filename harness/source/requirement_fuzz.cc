// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// A requirement that a subject declares. What passes the gate reaches uv as a line of its input, so
// it must be one line of plain characters without a place to fetch from.
#include "harness/fuzzing/fuzzing.h"
#include "harness/source/requirement_policy.h"

namespace bkm {
namespace {

// Without what a marker compares with, which uv reads as plain text whatever it holds.
std::string WithoutQuoted(const std::string& text) {
  std::string outside;
  char quote = 0;
  for (const char c : text) {
    if (quote == 0 && (c == '\'' || c == '"'))
      quote = c;
    else if (quote == 0)
      outside += c;
    else if (c == quote)
      quote = 0;
  }
  return outside;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(AsText(data, size));
  const absl::Status status = CheckRequirement(text);
  if (!status.ok()) {
    ExpectUsableError(status, size);
    return 0;
  }
  const std::string outside = WithoutQuoted(text);
  HARNESS_CHECK(text.find_first_of("\n\r") == text.npos) << text;
  HARNESS_CHECK(outside.find_first_of("@\\$`") == text.npos) << text;
  HARNESS_CHECK(outside.find("://") == text.npos) << text;
  const size_t first = text.find_first_not_of(" \t");
  HARNESS_CHECK(first != text.npos && text[first] != '-' && text[first] != '/' &&
                text[first] != '.' && text[first] != '#')
      << text;
  for (const char c : text)
    HARNESS_CHECK(c == '\t' || (c >= ' ' && c != '\x7f')) << "a control character";
  return 0;
}

}  // namespace bkm
