// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BASE_LINK_TREE_H_
#define HARNESS_BASE_LINK_TREE_H_

#include <filesystem>

#include "absl/status/status.h"

namespace bkm {

// Hard-links the new file `to` to `from`. Copies `from` where a link is not possible (another file
// system, too many links).
absl::Status LinkFile(const std::filesystem::path& from, const std::filesystem::path& to);

// Calls LinkFile for every regular file at or below `from`, replacing files at the target. Follows
// no symbolic link and leaves out special files, since a subject may have made them. Does nothing
// when `from` is missing. Only for files that are never modified in place, since a link shares the
// content.
absl::Status LinkTree(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace bkm

#endif  // HARNESS_BASE_LINK_TREE_H_
