// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/store/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"

namespace bkm {

absl::StatusOr<int> FileLock::Open(const std::filesystem::path& path) {
  RETURN_IF_ERROR(CreateDirectories(path.parent_path()));
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd >= 0) return fd;
  return absl::UnavailableError(
      absl::StrCat("cannot lock ", path.string(), ": ", std::strerror(errno)));
}

absl::StatusOr<FileLock> FileLock::Acquire(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const int fd, Open(path));
  FileLock lock(fd);
  if (::flock(fd, LOCK_EX) == 0) return lock;
  if (errno == EINTR) {
    return absl::CancelledError(absl::StrCat("interrupted while waiting for ", path.string()));
  }
  return absl::UnavailableError(
      absl::StrCat("cannot lock ", path.string(), ": ", std::strerror(errno)));
}

absl::StatusOr<std::optional<FileLock>> FileLock::TryAcquire(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const int fd, Open(path));
  FileLock lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return std::optional<FileLock>(std::move(lock));
  if (errno == EWOULDBLOCK) return std::optional<FileLock>();
  return absl::UnavailableError(
      absl::StrCat("cannot lock ", path.string(), ": ", std::strerror(errno)));
}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace bkm
