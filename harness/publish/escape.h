// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_ESCAPE_H_
#define HARNESS_PUBLISH_ESCAPE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "harness/base/shown_text.h"  // MarkdownText

namespace bkm {

// Escape text of subjects for the formats of a table. The text stays readable.

// Text or a quoted attribute of XML or HTML. Characters that are not shown and bytes that are not
// UTF-8 become U+FFFD.
std::string XmlText(absl::string_view text);

// One field of a CSV file (RFC 4180), in one line. A field that starts with = + - or @ gets a
// leading quote, since spreadsheets would take it for a formula.
std::string CsvField(absl::string_view text);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_ESCAPE_H_
