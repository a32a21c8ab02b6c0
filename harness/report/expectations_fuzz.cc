// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// A file of expected failures. Rewriting it for a run without cells keeps its comments, and what is
// rewritten is read again.
#include "harness/fuzzing/fuzzing.h"
#include "harness/report/expectations.h"

namespace bkm {
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::StatusOr<Expectations> lines = Expectations::Parse(AsText(data, size), "input");
  if (!lines.ok()) {
    ExpectUsableError(lines.status(), size);
    return 0;
  }
  const RunRecord run = {.matrix = "m", .finished = true};
  const std::string rewritten = lines->Rewritten(run);
  const absl::StatusOr<Expectations> again = Expectations::Parse(rewritten, "rewritten");
  HARNESS_CHECK(again.ok()) << again.status();
  HARNESS_CHECK(again->Rewritten(run) == rewritten) << rewritten;
  return 0;
}

}  // namespace bkm
