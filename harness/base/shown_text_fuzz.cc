// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// Text of strangers as people see it: valid UTF-8 of characters that may be shown, and the same
// when it is shown again.
#include "harness/base/shown_text.h"
#include "harness/fuzzing/fuzzing.h"

namespace bkm {
namespace {

void ExpectShown(const std::string& text, bool one_line) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Character character = DecodeUtf8(text, at);
    HARNESS_CHECK(character.bytes > 0) << "not UTF-8 at byte " << at;
    HARNESS_CHECK(IsShown(character.code) && !(character.code == '\n' && one_line))
        << "U+" << std::hex << character.code;
    at += character.bytes;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text = AsText(data, size);
  ExpectShown(ShownText(text), /*one_line=*/false);
  ExpectShown(ShownLine(text), /*one_line=*/true);
  ExpectShown(MarkdownText(text), /*one_line=*/true);
  ExpectShown(MarkdownCode(text), /*one_line=*/true);
  HARNESS_CHECK(ShownText(ShownText(text)) == ShownText(text)) << "it changes when shown again";
  HARNESS_CHECK(ShownLine(ShownLine(text)) == ShownLine(text)) << "it changes when shown again";
  return 0;
}

}  // namespace bkm
