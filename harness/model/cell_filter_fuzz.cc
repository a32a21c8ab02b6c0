// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// Filters and subjects as people write them.
#include "harness/fuzzing/fuzzing.h"
#include "harness/model/cell.h"
#include "harness/model/engine_kind.h"
#include "harness/model/subject.h"

namespace bkm {
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text = AsText(data, size);
  const absl::StatusOr<CellFilter> filter = CellFilter::Parse(text);
  Cell cell;
  cell.engine = EngineKindNames()[size % EngineKindNames().size()];  // the only free text is below
  cell.engine_label = cell.library_label = cell.runtime = cell.probe.model = std::string(text);
  if (filter.ok())
    filter->Matches(cell);
  else
    ExpectUsableError(filter.status(), size);
  // An id is a filter that matches its cell, whatever its fields hold.
  const absl::StatusOr<CellFilter> own = CellFilter::Parse(CellId(cell));
  HARNESS_CHECK(own.ok() && own->Matches(cell)) << CellId(cell) << own.status();
  const absl::StatusOr<SubjectSpec> subject = ParseSubjectSpec(text);
  if (!subject.ok()) {
    ExpectUsableError(subject.status(), size);
    return 0;
  }
  const absl::StatusOr<SubjectSpec> again = ParseSubjectSpec(subject->ToString());
  HARNESS_CHECK(again.ok() && again->ToString() == subject->ToString()) << subject->ToString();
  return 0;
}

}  // namespace bkm
