// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// The bytes that a cell writes to its pipe: cut anywhere, they give the same observation, which the
// rest of the harness can read.
#include "harness/cell/event_log.h"
#include "harness/fuzzing/fuzzing.h"
#include "harness/model/cell_facts.h"

namespace bkm {
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes = AsText(data, size);
  EventLog whole;
  whole.Feed(bytes);
  const Json observation = whole.Observation();
  HARNESS_CHECK(ParseJson(ToText(observation), "observation").ok()) << ToText(observation);
  HARNESS_CHECK(ObservationFromJson(CellFacts::OfReport(observation).json(), "admitted").ok());
  EventLog parts;
  const size_t step = size > 0 ? 1 + data[0] % 64 : 1;
  for (size_t at = 0; at < size; at += step) parts.Feed(bytes.substr(at, step));
  HARNESS_CHECK(parts.Observation() == observation) << "cut into parts of " << step;
  HARNESS_CHECK(parts.ignored() == whole.ignored() && parts.done() == whole.done() &&
                parts.overrun() == whole.overrun());
  return 0;
}

}  // namespace bkm
