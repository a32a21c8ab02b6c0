// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/mount_tree.h"

#include <fcntl.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"
#include "harness/cell/mount_calls.h"
#include "harness/cell/system_error.h"

namespace bkm {
namespace {

absl::StatusOr<Descriptor> Clone(const std::filesystem::path& path) {
  Descriptor tree(
      OpenTree(AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE));
  if (!tree.valid()) return SystemError(absl::StrCat("cannot bind ", path.string()));
  return tree;
}

absl::StatusOr<Descriptor> CloneWith(const std::filesystem::path& path, uint64_t flags) {
  ASSIGN_OR_RETURN(Descriptor tree, Clone(path));
  mount_attr attributes = {};
  attributes.attr_set = flags;
  if (SetMountAttributes(tree.get(), "", AT_EMPTY_PATH | AT_RECURSIVE, attributes) != 0)
    return SystemError(absl::StrCat("cannot restrict ", path.string()));
  return tree;
}

bool Configure(int context, unsigned command, const char* key, const char* value) {
  return ConfigureFileSystem(context, command, key, value) == 0;
}

}  // namespace

absl::StatusOr<Descriptor> OpenMountTree(const std::filesystem::path& path, Access access) {
  uint64_t flags = MOUNT_ATTR_NOSUID;
  if (access != Access::kDevice) flags |= MOUNT_ATTR_NODEV;
  if (access != Access::kWrite) flags |= MOUNT_ATTR_RDONLY;
  return CloneWith(path, flags);
}

absl::StatusOr<Descriptor> CloneReadOnly(const std::filesystem::path& path) {
  return CloneWith(path, MOUNT_ATTR_RDONLY);
}

absl::StatusOr<Descriptor> MakeMemoryTree(absl::string_view size) {
  const Descriptor context(OpenFileSystem("tmpfs", FSOPEN_CLOEXEC));
  if (!context.valid() ||
      !Configure(context.get(), FSCONFIG_SET_STRING, "size", std::string(size).c_str()) ||
      !Configure(context.get(), FSCONFIG_SET_STRING, "nr_inodes", "64k") ||
      !Configure(context.get(), FSCONFIG_SET_STRING, "mode", "1777") ||
      !Configure(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr))
    return SystemError("cannot create a file system in memory");
  Descriptor tree(
      MountFileSystem(context.get(), FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
  if (!tree.valid()) return SystemError("cannot mount a file system in memory");
  return tree;
}

}  // namespace bkm
