// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_MARKDOWN_LINES_H_
#define HARNESS_PUBLISH_MARKDOWN_LINES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace bkm {

// Markdown that can be read in a terminal, too: lines of at most 100 columns, but for longer words.

// Lines of `text`, which is Markdown: the first starts with `lead`, the others with as many spaces.
std::string WrappedMarkdown(absl::string_view lead, absl::string_view text);

// A fenced block of shell commands, which none of them ends. A long command goes on in the next
// line.
std::string ShellBlock(const std::vector<std::string>& lines);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_MARKDOWN_LINES_H_
