// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CLI_CONSOLE_H_
#define HARNESS_CLI_CONSOLE_H_

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace bkm {

// The only way from a command to the terminal: as ShownText() (harness/base/shown_text.h), because
// messages, names and labels come from subjects. tools/lint refuses other ways.
void Print(absl::string_view text);       // to standard output
void PrintError(absl::string_view text);  // to standard error

template <typename... Args>
void Printf(const absl::FormatSpec<Args...>& format, const Args&... args) {
  Print(absl::StrFormat(format, args...));
}
template <typename... Args>
void PrintErrorf(const absl::FormatSpec<Args...>& format, const Args&... args) {
  PrintError(absl::StrFormat(format, args...));
}

// Erases the current line of the terminal on standard error.
void EraseLine();

}  // namespace bkm

#endif  // HARNESS_CLI_CONSOLE_H_
