// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/mounts.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/descriptor.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/cell/cell_environment.h"
#include "harness/cell/system_error.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// Folders that are empty in a cell. Their files count against the machine's memory; there are few,
// because TMPDIR is below work/.
constexpr struct {
  const char* path;
  const char* options;
} kCovered[] = {{"/tmp", "size=256m,mode=1777"}, {"/dev/shm", "size=1g,mode=1777"}};

absl::Status SystemError(absl::string_view doing, const fs::path& path) {
  return bkm::SystemError(absl::StrCat(doing, " ", path.string()));
}

// A mount of `path` that is not attached yet: it can be attached after `path` was covered.
struct Detached {
  fs::path path;
  Descriptor tree;
};

absl::StatusOr<Detached> Detach(const fs::path& path) {
  Detached result{path,
                  Descriptor(::open_tree(AT_FDCWD, path.c_str(),
                                         OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE))};
  if (!result.tree.valid()) return SystemError("cannot bind", path);
  return result;
}

absl::Status MakeReadOnly(int at, const char* path, unsigned flags) {
  mount_attr attributes = {};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  if (::mount_setattr(at, path, flags | AT_RECURSIVE, &attributes, sizeof attributes) != 0)
    return SystemError("cannot make read-only", path);
  return absl::OkStatus();
}

absl::Status Attach(const Detached& mount) {
  if (::move_mount(mount.tree.get(), "", AT_FDCWD, mount.path.c_str(), MOVE_MOUNT_F_EMPTY_PATH) !=
      0)
    return SystemError("cannot bind", mount.path);
  return absl::OkStatus();
}

bool IsCovered(const fs::path& path) {
  return std::any_of(std::begin(kCovered), std::end(kCovered), [&](const auto& covered) {
    return absl::StartsWith(path.string(), absl::StrCat(covered.path, "/"));
  });
}

// The paths below covered folders that must stay visible: each as named and as resolved, outermost
// first, without duplicates.
std::vector<fs::path> Kept(const CellView& view) {
  std::set<fs::path> paths;
  const auto add = [&](const fs::path& path) {
    std::error_code error;
    if (!fs::exists(path, error)) return;
    for (const fs::path& name : {path.lexically_normal(), fs::canonical(path, error)}) {
      if (!error && IsCovered(name)) paths.insert(name);
    }
  };
  add(view.dir);
  for (const fs::path& path : view.reads) add(path);
  std::vector<fs::path> kept;
  for (const fs::path& path : paths) {
    const bool inside =
        !kept.empty() && absl::StartsWith(path.string(), kept.back().string() + "/");
    if (!inside) kept.push_back(path);
  }
  return kept;
}

absl::Status CoverTemporaries(const fs::path& work) {
  for (const auto& covered : kCovered) {
    std::error_code error;
    if (!fs::is_directory(covered.path, error)) continue;
    if (::mount("tmpfs", covered.path, "tmpfs", MS_NOSUID | MS_NODEV, covered.options) != 0)
      return SystemError("cannot cover", covered.path);
  }
  std::error_code ignored;  // the link only serves paths that modules kept during the preload
  fs::create_symlink(work / "home", kPreloadHome, ignored);
  return absl::OkStatus();
}

absl::Status AttachKept(const Detached& mount) {
  struct stat info = {};
  ::fstatat(mount.tree.get(), "", &info, AT_EMPTY_PATH);
  if (S_ISDIR(info.st_mode)) {
    RETURN_IF_ERROR(CreateDirectories(mount.path));
  } else {
    RETURN_IF_ERROR(WriteFile(mount.path, ""));
  }
  return Attach(mount);
}

}  // namespace

absl::Status EnterMounts(const CellView& view, bool own_proc) {
  if (::unshare(CLONE_NEWNS) != 0)
    return SystemError("cannot create a mount namespace for", view.dir);
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return SystemError("cannot make private", "/");
  std::vector<Detached> writable;
  for (const fs::path& path : view.writable) {
    ASSIGN_OR_RETURN(Detached mount, Detach(path));
    writable.push_back(std::move(mount));
  }
  RETURN_IF_ERROR(MakeReadOnly(AT_FDCWD, "/", 0));
  std::vector<Detached> kept;
  for (const fs::path& path : Kept(view)) {
    ASSIGN_OR_RETURN(Detached mount, Detach(path));
    RETURN_IF_ERROR(MakeReadOnly(mount.tree.get(), "", AT_EMPTY_PATH));
    kept.push_back(std::move(mount));
  }
  RETURN_IF_ERROR(CoverTemporaries(view.dir / "work"));
  for (const Detached& mount : kept) RETURN_IF_ERROR(AttachKept(mount));
  for (const Detached& mount : writable) RETURN_IF_ERROR(Attach(mount));
  constexpr unsigned long kProcFlags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
  if (own_proc && ::mount("proc", "/proc", "proc", kProcFlags, nullptr) != 0)
    return SystemError("cannot mount", "/proc");
  return absl::OkStatus();
}

}  // namespace bkm
