// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// run.json and verdict.json.
#include "harness/fuzzing/fuzzing.h"
#include "harness/model/cell_record.h"
#include "harness/model/verdict.h"

namespace bkm {
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text = AsText(data, size);
  ExpectRoundTrip(text, [](const Json& json) { return RunRecordFromJson(json, "input"); });
  ExpectRoundTrip(text, [](const Json& json) { return VerdictFromJson(json, "input"); });
  return 0;
}

}  // namespace bkm
