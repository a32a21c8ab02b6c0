// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/store/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"

namespace bkm {

namespace {

absl::Status CannotLock(const std::filesystem::path& path) {
  return absl::UnavailableError(
      absl::StrCat("cannot lock ", path.string(), ": ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<FileLock> FileLock::Open(const std::filesystem::path& path) {
  RETURN_IF_ERROR(CreateDirectories(path.parent_path()));
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file.valid()) return CannotLock(path);
  return FileLock(std::move(file));
}

absl::StatusOr<FileLock> FileLock::Acquire(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(FileLock lock, Open(path));
  if (::flock(lock.file_.get(), LOCK_EX) == 0) return lock;
  if (errno == EINTR) {
    return absl::CancelledError(absl::StrCat("interrupted while waiting for ", path.string()));
  }
  return CannotLock(path);
}

absl::StatusOr<std::optional<FileLock>> FileLock::TryAcquire(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(FileLock lock, Open(path));
  if (::flock(lock.file_.get(), LOCK_EX | LOCK_NB) == 0)
    return std::optional<FileLock>(std::move(lock));
  if (errno == EWOULDBLOCK) return std::optional<FileLock>();
  return CannotLock(path);
}

}  // namespace bkm
