// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SOURCE_TREE_DIGEST_H_
#define HARNESS_SOURCE_TREE_DIGEST_H_

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"

namespace bkm {

// SHA-256 over the relative paths and contents of all files below `folder`, except those that
// Python and git create (__pycache__, *.pyc, .git).
absl::StatusOr<std::string> TreeDigest(const std::filesystem::path& folder);

}  // namespace bkm

#endif  // HARNESS_SOURCE_TREE_DIGEST_H_
