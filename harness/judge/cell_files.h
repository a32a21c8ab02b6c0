// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_CELL_FILES_H_
#define HARNESS_JUDGE_CELL_FILES_H_

#include <filesystem>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/model/cell_facts.h"
#include "harness/numerics/safetensors.h"

namespace bkm {

// The relations of a cell's layers, in its folder (harness/protocol/README.md).
inline constexpr char kRelationsFile[] = "tensors/attended.safetensors";
// Of a relation in the file of a training step; its digest follows.
inline constexpr char kRelationPrefix[] = "relation/";
inline constexpr char kBatchPrefix[] = "batch/";

// A tensor file that a cell wrote, `file` as in its observation. Follows no link, waits for no
// pipe, and reads a bounded number of bytes once.
absl::StatusOr<SafetensorsFile> OpenCellTensors(const std::filesystem::path& cell_dir,
                                                absl::string_view file);

// The second half of the gate for what comes back from a cell (CellFacts::OfReport is the first):
// with the ending "malformed" if a cell that completed names a file that is missing, linked from
// elsewhere, or not a safetensors file.
CellFacts AdmittedCell(CellFacts reported, const std::filesystem::path& cell_dir);

}  // namespace bkm

#endif  // HARNESS_JUDGE_CELL_FILES_H_
