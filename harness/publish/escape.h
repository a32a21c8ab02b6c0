// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_ESCAPE_H_
#define HARNESS_PUBLISH_ESCAPE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace bkm {

// Texts that subjects wrote, made harmless for the formats that we write. Each keeps what a person
// would read.

// As text of XML or HTML, also inside of a quoted attribute. What XML 1.0 cannot hold at all
// becomes U+FFFD, as bytes that are not UTF-8 do.
std::string XmlText(absl::string_view text);

// As text of a Markdown table's cell: one line, no HTML, no links, nothing emphasised.
std::string MarkdownText(absl::string_view text);

// As one field of a CSV file (RFC 4180). Spreadsheets take a field that starts with = + - or @ for
// a formula: it gets a quote in front.
std::string CsvField(absl::string_view text);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_ESCAPE_H_
