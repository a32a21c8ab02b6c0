// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// The documents of bundles and of their results.
#include "harness/bundle/manifest.h"
#include "harness/fuzzing/fuzzing.h"
#include "harness/runner/measured_on.h"

namespace bkm {
namespace {

template <typename Read>
void ExpectSameAgain(absl::string_view text, const Read& read) {
  const auto document = read(text, "input");
  if (!document.ok()) return ExpectUsableError(document.status(), text.size());
  const std::string written = DocumentText(*document);
  const auto same = read(written, "what was written");
  HARNESS_CHECK(same.ok()) << same.status() << "\n" << written;
  HARNESS_CHECK(DocumentText(*same) == written) << written << DocumentText(*same);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text = AsText(data, size);
  ExpectSameAgain(text, ReadManifest);
  ExpectSameAgain(text, ReadPackedTree);
  ExpectSameAgain(text, ReadCellResult);
  ExpectSameAgain(text, ReadDocument<WorkMachine>);
  ExpectSameAgain(text, ReadDocument<SkippedCells>);
  const absl::StatusOr<RuntimeLock> lock = ReadPackedLock(text, "input");
  if (!lock.ok()) ExpectUsableError(lock.status(), size);
  return 0;
}

}  // namespace bkm
