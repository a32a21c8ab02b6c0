// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BUNDLE_EVIDENCE_H_
#define HARNESS_BUNDLE_EVIDENCE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/folder_reader.h"

namespace bkm {

// The paths of the evidence in a cell's folder, also of files that may be missing. What a subject
// left in the folder that no observation can name is left out: it must not spoil the results of
// other cells.
absl::StatusOr<std::vector<std::string>> EvidenceIn(const FolderReader& reader);

}  // namespace bkm

#endif  // HARNESS_BUNDLE_EVIDENCE_H_
