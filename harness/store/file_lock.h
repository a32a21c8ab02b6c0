// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_STORE_FILE_LOCK_H_
#define HARNESS_STORE_FILE_LOCK_H_

#include <filesystem>
#include <optional>

#include "absl/status/statusor.h"

namespace bkm {

// An exclusive lock among processes and threads, held until destruction or the end of the process.
// The file stays: removing it would let two holders in.
class FileLock {
 public:
  // Waits. Creates the file and its folders; Cancelled when a signal interrupts the wait.
  static absl::StatusOr<FileLock> Acquire(const std::filesystem::path& path);
  // nullopt when somebody else holds it.
  static absl::StatusOr<std::optional<FileLock>> TryAcquire(const std::filesystem::path& path);

  FileLock(FileLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  static absl::StatusOr<int> Open(const std::filesystem::path& path);

  int fd_;
};

}  // namespace bkm

#endif  // HARNESS_STORE_FILE_LOCK_H_
