// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// A matrix file.
#include "harness/fuzzing/fuzzing.h"
#include "harness/matrix/matrix.h"

namespace bkm {
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::StatusOr<Json> json = ParseJson(AsText(data, size), "input");
  if (!json.ok()) return 0;
  const absl::StatusOr<Matrix> matrix = MatrixFromJson(*json, "input");
  if (!matrix.ok()) ExpectUsableError(matrix.status(), size);
  return 0;
}

}  // namespace bkm
