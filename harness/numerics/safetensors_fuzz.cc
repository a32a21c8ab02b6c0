// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// A tensor file that a subject wrote: every view of it lies within its bytes, and none shares bytes
// with another.
#include "harness/fuzzing/fuzzing.h"
#include "harness/numerics/safetensors.h"

namespace bkm {
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::StatusOr<SafetensorsFile> file =
      SafetensorsFile::FromBytes(std::string(AsText(data, size)), "input");
  if (!file.ok()) {
    ExpectUsableError(file.status(), size);
    return 0;
  }
  size_t bytes = 0;
  for (const auto& [name, tensor] : file->tensors()) {
    int64_t numel = 1;
    for (const int64_t extent : tensor.shape) numel *= extent;
    HARNESS_CHECK(numel == tensor.numel) << name;
    HARNESS_CHECK(tensor.bytes.size() ==
                  static_cast<size_t>(tensor.numel * BytesPerElement(tensor.type)))
        << name;
    bytes += tensor.bytes.size();
    std::string copy(tensor.bytes);  // AddressSanitizer sees a view that leaves the file
    file->Doubles(name).IgnoreError();
    file->Ints(name).IgnoreError();
    file->Scalar(name).IgnoreError();
  }
  // The header's length, the header, and then the tensors without a hole.
  HARNESS_CHECK(bytes + 8 <= size) << "tensors share bytes";
  return 0;
}

}  // namespace bkm
