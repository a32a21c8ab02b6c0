// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cli/console.h"

#include <cstdio>
#include <string>

#include "harness/base/shown_text.h"

namespace bkm {
namespace {

void Write(absl::string_view text, std::FILE* file) {
  const std::string shown = ShownText(text);
  std::fwrite(shown.data(), 1, shown.size(), file);
}

}  // namespace

void Print(absl::string_view text) { Write(text, stdout); }
void PrintError(absl::string_view text) { Write(text, stderr); }
void EraseLine() { std::fputs("\r\033[K", stderr); }

}  // namespace bkm
