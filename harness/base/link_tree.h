// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BASE_LINK_TREE_H_
#define HARNESS_BASE_LINK_TREE_H_

#include <filesystem>

#include "absl/status/status.h"

namespace bkm {

// Makes the file `to`, which is not there yet, the same as `from`: a hard link, or a copy where
// links end (another file system, too many of them).
absl::Status LinkFile(const std::filesystem::path& from, const std::filesystem::path& to);

// LinkFile for every regular file at and below `from`, over what is there. Nothing at `from` is
// nothing to do. For files that are replaced and never written into.
absl::Status LinkTree(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace bkm

#endif  // HARNESS_BASE_LINK_TREE_H_
