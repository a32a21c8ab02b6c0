// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// JSON of any origin: what is read is written and read as the same.
#include "harness/fuzzing/fuzzing.h"

namespace bkm {
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text = AsText(data, size);
  const absl::StatusOr<Json> json = ParseJson(text, "input");
  if (!json.ok()) {
    ExpectUsableError(json.status(), size);
    return 0;
  }
  const absl::StatusOr<Json> again = ParseJson(ToText(*json), "again");
  HARNESS_CHECK(again.ok() && *again == *json) << ToText(*json);
  return 0;
}

}  // namespace bkm
