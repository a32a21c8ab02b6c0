// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/history/search_log.h"

#include <fstream>

#include "absl/strings/str_format.h"
#include "harness/report/labels.h"

namespace bkm {

void SearchLog::Line(const std::string& text) {
  console_.OnSetUp(text);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  std::ofstream(file_, std::ios::app) << absl::StrFormat("%8.1f s  %s\n", seconds, Printable(text));
}

}  // namespace bkm
