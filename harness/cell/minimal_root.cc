// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/minimal_root.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"
#include "harness/cell/mount_calls.h"
#include "harness/cell/system_error.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// What a cell has no business with: the machine's hardware, its kernel and its other users.
constexpr const char* kHiddenFiles[] = {
    "buddyinfo",   "config.gz",   "diskstats",     "interrupts", "iomem",      "ioports",
    "kallsyms",    "kcore",       "key-users",     "keys",       "kmsg",       "kpagecgroup",
    "kpagecount",  "kpageflags",  "latency_stats", "modules",    "mtrr",       "pagetypeinfo",
    "sched_debug", "schedstat",   "slabinfo",      "softirqs",   "swaps",      "sysrq-trigger",
    "timer_list",  "timer_stats", "vmallocinfo",   "zoneinfo",   "partitions", "locks"};
constexpr const char* kHiddenFolders[] = {"acpi", "asound", "bus", "dynamic_debug", "fs",
                                          "irq",  "scsi",   "spl", "tty",           "driver"};

absl::Status ErrorAt(absl::string_view doing, const fs::path& path) {
  return SystemError(absl::StrCat(doing, " ", path.string()));
}

bool IsFolder(int tree) {
  struct stat info = {};
  return ::fstatat(tree, "", &info, AT_EMPTY_PATH) == 0 && S_ISDIR(info.st_mode);
}

absl::Status MakeFolders(const fs::path& path) {
  if (::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) return absl::OkStatus();
  if (errno != ENOENT) return ErrorAt("cannot create the folder", path);
  RETURN_IF_ERROR(MakeFolders(path.parent_path()));
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST)
    return ErrorAt("cannot create the folder", path);
  return absl::OkStatus();
}

absl::Status Bind(const fs::path& from, const fs::path& to) {
  if (::mount(from.c_str(), to.c_str(), nullptr, MS_BIND, nullptr) != 0)
    return ErrorAt("cannot bind", to);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MinimalRoot> MinimalRoot::Create() {
  for (const char* place : {"/tmp", "/mnt", "/usr"}) {
    struct stat info = {};
    if (::stat(place, &info) != 0 || !S_ISDIR(info.st_mode)) continue;
    if (::mount("tmpfs", place, "tmpfs", MS_NOSUID | MS_NODEV, "size=16m,nr_inodes=16k,mode=755") !=
        0)
      return ErrorAt("cannot mount a file system in memory on", place);
    return MinimalRoot(place);
  }
  return absl::UnavailableError("cannot build a root folder: the machine has no /tmp");
}

fs::path MinimalRoot::Here(const fs::path& path) const { return at_ / path.relative_path(); }

absl::Status MinimalRoot::Folder(const fs::path& path) const { return MakeFolders(Here(path)); }

absl::Status MinimalRoot::File(const fs::path& path, absl::string_view content) const {
  const fs::path here = Here(path);
  RETURN_IF_ERROR(MakeFolders(here.parent_path()));
  const Descriptor file(::open(here.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file.valid() || !WriteAll(file.get(), content)) return ErrorAt("cannot write", path);
  return absl::OkStatus();
}

absl::Status MinimalRoot::Link(const fs::path& path, const std::string& target) const {
  const fs::path here = Here(path);
  RETURN_IF_ERROR(MakeFolders(here.parent_path()));
  if (::symlink(target.c_str(), here.c_str()) != 0 && errno != EEXIST)
    return ErrorAt("cannot link", path);
  return absl::OkStatus();
}

absl::Status MinimalRoot::Attach(const Attachment& attachment) const {
  if (IsFolder(attachment.tree.get())) {
    RETURN_IF_ERROR(Folder(attachment.path));
  } else if (::access(Here(attachment.path).c_str(), F_OK) != 0) {
    RETURN_IF_ERROR(File(attachment.path, ""));
  }
  if (MoveMount(attachment.tree.get(), "", AT_FDCWD, Here(attachment.path).c_str(),
                MOVE_MOUNT_F_EMPTY_PATH) != 0)
    return ErrorAt("cannot bind", attachment.path);
  return absl::OkStatus();
}

absl::Status MinimalRoot::AttachAll(std::vector<Attachment> attachments) const {
  std::stable_sort(attachments.begin(), attachments.end(),
                   [](const Attachment& a, const Attachment& b) { return a.path < b.path; });
  for (const Attachment& attachment : attachments) RETURN_IF_ERROR(Attach(attachment));
  return absl::OkStatus();
}

absl::Status MinimalRoot::Proc(ProcView view) const {
  RETURN_IF_ERROR(Folder("/proc"));
  const fs::path proc = Here("/proc");
  if (::mount("proc", proc.c_str(), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    return ErrorAt("cannot mount", "/proc");
  if (view == ProcView::kWhole) return absl::OkStatus();
  RETURN_IF_ERROR(Folder("/.hidden"));
  RETURN_IF_ERROR(File("/.nothing", ""));
  struct stat info = {};
  for (const char* name : kHiddenFiles) {
    if (::lstat((proc / name).c_str(), &info) == 0 && S_ISREG(info.st_mode))
      RETURN_IF_ERROR(Bind(Here("/.nothing"), proc / name));
  }
  for (const char* name : kHiddenFolders) {
    if (::lstat((proc / name).c_str(), &info) == 0 && S_ISDIR(info.st_mode))
      RETURN_IF_ERROR(Bind(Here("/.hidden"), proc / name));
  }
  const fs::path settings = proc / "sys";
  if (view == ProcView::kHiddenForGpu) RETURN_IF_ERROR(Bind(settings, settings));
  mount_attr attributes = {};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  const fs::path& fixed = view == ProcView::kHiddenForGpu ? settings : proc;
  if (SetMountAttributes(AT_FDCWD, fixed.c_str(), AT_RECURSIVE, attributes) != 0)
    return ErrorAt("cannot make read-only", "/proc");
  return absl::OkStatus();
}

absl::Status MinimalRoot::Enter() const {
  if (::chdir(at_.c_str()) != 0) return ErrorAt("cannot enter", at_);
  if (::syscall(SYS_pivot_root, ".", ".") != 0) return ErrorAt("cannot change the root to", at_);
  // The old root lies over the new one now.
  if (::umount2(".", MNT_DETACH) != 0) return ErrorAt("cannot let go of the root below", at_);
  if (::chdir("/") != 0) return ErrorAt("cannot enter", "/");
  mount_attr attributes = {};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  if (SetMountAttributes(AT_FDCWD, "/", 0, attributes) != 0)
    return ErrorAt("cannot make read-only", "/");
  return absl::OkStatus();
}

}  // namespace bkm
