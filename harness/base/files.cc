// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/descriptor.h"
#include "harness/base/file_steps.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

constexpr size_t kMostBytes = size_t{1} << 30;

absl::Status SystemError(absl::string_view doing, const fs::path& path, int error) {
  const std::string message = absl::StrCat(doing, " ", path.string(), ": ", std::strerror(error));
  if (error == ENOENT) return absl::NotFoundError(message);
  if (error == ENOSPC || error == EDQUOT) {
    return absl::ResourceExhaustedError(
        absl::StrCat(message, " (free some space, or set BKM_CACHE)"));
  }
  return absl::UnavailableError(message);
}

// A folder whose entries may be changed; otherwise errno says why not.
Descriptor OpenWritableFolder(int at, const char* name) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  Descriptor folder(::openat(at, name, kFlags));
  if (!folder.valid() && errno == EACCES && ::fchmodat(at, name, S_IRWXU, 0) == 0)
    folder = Descriptor(::openat(at, name, kFlags));
  struct stat found = {};
  if (folder.valid() && ::fstat(folder.get(), &found) == 0 && (found.st_mode & S_IRWXU) != S_IRWXU)
    ::fchmod(folder.get(), found.st_mode | S_IRWXU);
  return folder;
}

bool ListNames(int folder, std::vector<std::string>& names) {
  DIR* listing = ::fdopendir(::fcntl(folder, F_DUPFD_CLOEXEC, 0));
  if (listing == nullptr) return false;
  ::rewinddir(listing);
  while (const dirent* entry = ::readdir(listing)) {
    const absl::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(listing);
  return true;
}

// Whether `name` is gone; otherwise errno says why not.
bool Unlink(int folder, const std::string& name, int flags = 0) {
  return ::unlinkat(folder, name.c_str(), flags) == 0 || errno == ENOENT;
}

// Moves `name` from `folder` to a new name in `top`.
bool MoveUp(int folder, const std::string& name, int top, int64_t& moved) {
  while (true) {
    const std::string target = absl::StrCat(".removing-", ++moved);
    if (::renameat2(folder, name.c_str(), top, target.c_str(), RENAME_NOREPLACE) == 0) return true;
    if (errno == EEXIST) continue;
    // To move a folder, its own ".." must be writable.
    if (errno != EACCES || !OpenWritableFolder(folder, name.c_str()).valid()) return false;
    if (::renameat(folder, name.c_str(), top, target.c_str()) == 0) return true;
    return false;
  }
}

// Removes the files of a folder in `top`, moves its folders to `top`, and removes it.
bool RemoveFlat(int top, const std::string& name, int64_t& moved) {
  if (Unlink(top, name)) return true;
  if (errno != EISDIR) return false;
  const Descriptor folder = OpenWritableFolder(top, name.c_str());
  std::vector<std::string> names;
  if (!folder.valid() || !ListNames(folder.get(), names)) return false;
  for (const std::string& entry : names) {
    if (Unlink(folder.get(), entry)) continue;
    if (errno != EISDIR || !MoveUp(folder.get(), entry, top, moved)) return false;
  }
  return Unlink(top, name, AT_REMOVEDIR);
}

// Removes everything in `top`; otherwise errno says why not. A hostile cell nests folders deeper
// than a path, the stack and the open files of a process reach: so each folder is moved to the top
// before it is emptied.
bool EmptyTree(int top) {
  int64_t moved = 0;
  while (true) {
    std::vector<std::string> names;
    if (!ListNames(top, names)) return false;
    if (names.empty()) return true;
    for (const std::string& name : names) {
      if (!RemoveFlat(top, name, moved)) return false;
    }
  }
}

}  // namespace

absl::StatusOr<Descriptor> OpenRegularFile(const fs::path& path) {
  // O_NONBLOCK: else opening a FIFO waits for a writer. Reading a regular file ignores it.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat found = {};
  if (!file.valid() || ::fstat(file.get(), &found) != 0)
    return SystemError("cannot read", path, errno);
  if (S_ISDIR(found.st_mode)) return SystemError("cannot read", path, EISDIR);
  if (!S_ISREG(found.st_mode))
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read ", path.string(), ": it is not a regular file"));
  return file;
}

absl::StatusOr<std::string> ReadFile(const fs::path& path) {
  ASSIGN_OR_RETURN(const Descriptor file, OpenRegularFile(path));
  struct stat found = {};
  std::string content;
  // The size is a hint: that of a file in /proc is 0.
  if (::fstat(file.get(), &found) == 0)
    content.resize(std::min(static_cast<size_t>(found.st_size), kMostBytes) + 1);
  size_t size = 0;
  while (true) {
    if (size > kMostBytes)
      return absl::InvalidArgumentError(
          absl::StrCat("cannot read ", path.string(), ": it is larger than 1 GiB"));
    if (size == content.size()) content.resize(std::max<size_t>(2 * size, 1 << 16));
    const ssize_t count = ::read(file.get(), content.data() + size, content.size() - size);
    if (count == 0) break;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError("cannot read", path, errno);
    size += static_cast<size_t>(count);
  }
  content.resize(size);
  return content;
}

namespace {

// Creates missing folders. The parent of each new one is appended to `changed`.
absl::Status CreateFolders(const fs::path& folder, std::vector<fs::path>& changed) {
  std::error_code error;
  if (folder.empty() || fs::is_directory(folder, error)) return absl::OkStatus();
  const fs::path parent = folder.parent_path();
  if (parent != folder) RETURN_IF_ERROR(CreateFolders(parent, changed));
  if (::mkdir(folder.c_str(), 0777) == 0) {
    changed.push_back(parent.empty() ? fs::path(".") : parent);
    return absl::OkStatus();
  }
  const int reason = errno;
  if (fs::is_directory(folder, error)) return absl::OkStatus();  // another process was faster
  return SystemError("cannot create the folder", folder, reason);
}

absl::Status Write(const fs::path& path, absl::string_view content, bool durable) {
  FileSteps& steps = FileSteps::Current();
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::vector<fs::path> changed;
  RETURN_IF_ERROR(CreateFolders(folder, changed));
  changed.push_back(folder);
  std::string temporary = path.string() + ".XXXXXX";
  Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file.valid()) return SystemError("cannot write", path, errno);
  ::fchmod(file.get(), 0644);
  int error = steps.Write(file.get(), temporary, content);
  if (!error && durable) error = steps.Sync(file.get(), temporary);
  const int close_error = file.Close();
  if (!error) error = close_error;
  if (!error) error = steps.Rename(temporary, path);
  if (error) {
    ::unlink(temporary.c_str());
    return SystemError("cannot write", path, error);
  }
  if (!durable) return absl::OkStatus();
  // The innermost folder is first: a new folder appears with its content.
  for (auto it = changed.rbegin(); it != changed.rend(); ++it) RETURN_IF_ERROR(SyncFolder(*it));
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteFile(const fs::path& path, absl::string_view content) {
  return Write(path, content, /*durable=*/true);
}

absl::Status WriteScratchFile(const fs::path& path, absl::string_view content) {
  return Write(path, content, /*durable=*/false);
}

absl::Status SyncFile(int file, const fs::path& path) {
  const int error = FileSteps::Current().Sync(file, path);
  return error ? SystemError("cannot sync", path, error) : absl::OkStatus();
}

absl::Status SyncFolder(const fs::path& folder) {
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid()) return SystemError("cannot open", folder, errno);
  const int error = FileSteps::Current().SyncFolder(opened.get(), folder);
  return error ? SystemError("cannot sync", folder, error) : absl::OkStatus();
}

absl::Status SyncTree(const fs::path& folder) {
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid()) return SystemError("cannot open", folder, errno);
  const int error = FileSteps::Current().SyncTree(opened.get(), folder);
  return error ? SystemError("cannot sync", folder, error) : absl::OkStatus();
}

absl::Status CreateDirectories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return SystemError("cannot create the folder", path, error.value());
  return absl::OkStatus();
}

absl::StatusOr<fs::path> CreateTempDirectory(const fs::path& parent, absl::string_view prefix) {
  RETURN_IF_ERROR(CreateDirectories(parent));
  std::string name = (parent / absl::StrCat(prefix, "XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr)
    return SystemError("cannot create a folder in", parent, errno);
  return fs::path(name);
}

absl::Status RemoveTree(const fs::path& path) {
  FileSteps::Current().Remove(path);
  if (::unlink(path.c_str()) == 0 || errno == ENOENT || errno == ENOTDIR) return absl::OkStatus();
  if (errno != EISDIR) return SystemError("cannot remove", path, errno);
  const Descriptor folder = OpenWritableFolder(AT_FDCWD, path.c_str());
  if (!folder.valid()) return SystemError("cannot open", path, errno);
  if (!EmptyTree(folder.get()) || ::rmdir(path.c_str()) != 0)
    return SystemError("cannot remove", path, errno);
  return absl::OkStatus();
}

bool IsAtOrBelow(const fs::path& path, const fs::path& folder) {
  return path == folder || absl::StartsWith(path.string(), folder.string() + "/");
}

fs::path CacheDirectory() {
  if (const char* cache = std::getenv("BKM_CACHE"); cache && *cache) return cache;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg) return fs::path(xdg) / "bkm";
  const char* home = std::getenv("HOME");
  return fs::path(home && *home ? home : "/tmp") / ".cache" / "bkm";
}

}  // namespace bkm
