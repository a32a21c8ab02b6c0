// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// A published table: it is read and written as the same.
#include "harness/fuzzing/fuzzing.h"
#include "harness/publish/published_table.h"

namespace bkm {
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ExpectRoundTrip(AsText(data, size),
                  [](const Json& json) { return PublishedTableFromJson(json, "input"); });
  return 0;
}

}  // namespace bkm
