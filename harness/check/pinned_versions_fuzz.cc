// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// A requirements file, and the same text as TOML.
#include "harness/check/pinned_versions.h"
#include "harness/fuzzing/fuzzing.h"

namespace bkm {
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const char* name : {"requirements.txt", "uv.lock"}) {
    const absl::StatusOr<PinnedVersions> pins =
        PinnedVersionsOf(std::string(AsText(data, size)), name);
    if (!pins.ok()) ExpectUsableError(pins.status(), size);
  }
  return 0;
}

}  // namespace bkm
