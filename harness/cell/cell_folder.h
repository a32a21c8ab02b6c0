// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_CELL_FOLDER_H_
#define HARNESS_CELL_CELL_FOLDER_H_

#include <sys/types.h>

#include <filesystem>
#include <optional>

#include "absl/status/statusor.h"
#include "harness/base/descriptor.h"

namespace bkm {

// A cell's stdout and stderr.
struct CellStreams {
  Descriptor out;
  Descriptor err;
};

// Recreates work/ and tensors/ in `dir`, because a subject must not find files of the previous run,
// and opens the streams. `owner`: of both folders; none: this process's user.
absl::StatusOr<CellStreams> PrepareCellFolder(const std::filesystem::path& dir,
                                              std::optional<uid_t> owner);

// Makes `owner` the owner of `path` and of all files and folders below, without following links.
absl::Status ChangeOwner(const std::filesystem::path& path, uid_t owner);

}  // namespace bkm

#endif  // HARNESS_CELL_CELL_FOLDER_H_
