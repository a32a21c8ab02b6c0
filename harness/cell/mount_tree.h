// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_MOUNT_TREE_H_
#define HARNESS_CELL_MOUNT_TREE_H_

#include <filesystem>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/descriptor.h"

namespace bkm {

enum class Access { kRead, kWrite, kDevice };

// A file or folder as a mount that is attached nowhere, with everything mounted below it. Programs
// in it do not get the rights of their owner. `kDevice`: device nodes work; otherwise they do not.
absl::StatusOr<Descriptor> OpenMountTree(const std::filesystem::path& path, Access access);

// A read-only mount of `path` of this process's own mount namespace.
absl::StatusOr<Descriptor> CloneReadOnly(const std::filesystem::path& path);

// A new file system in memory that anyone may write to. `size`: as in "256m".
absl::StatusOr<Descriptor> MakeMemoryTree(absl::string_view size);

}  // namespace bkm

#endif  // HARNESS_CELL_MOUNT_TREE_H_
