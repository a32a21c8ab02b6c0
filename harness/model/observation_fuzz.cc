// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// A stored observation: any JSON is admitted as something that can be read, and what was admitted
// is admitted unchanged.
#include "harness/fuzzing/fuzzing.h"
#include "harness/model/cell_facts.h"

namespace bkm {
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text = AsText(data, size);
  ExpectRoundTrip(text, [](const Json& json) { return ObservationFromJson(json, "input"); });
  const absl::StatusOr<Json> json = ParseJson(text, "input");
  if (!json.ok()) return 0;
  const Json admitted = CellFacts::OfReport(*json).json();
  const absl::StatusOr<Observation> read = ObservationFromJson(admitted, "admitted");
  HARNESS_CHECK(read.ok()) << read.status();
  HARNESS_CHECK(CellFacts::OfReport(admitted).json() == admitted) << ToText(admitted);
  return 0;
}

}  // namespace bkm
