// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_STORE_FILE_LOCK_H_
#define HARNESS_STORE_FILE_LOCK_H_

#include <filesystem>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "harness/base/descriptor.h"

namespace bkm {

// An exclusive lock among processes and threads, held until destruction or the end of the process.
// The file stays: removing it would let two holders in.
class FileLock {
 public:
  // Waits. Creates the file and its folders; Cancelled when a signal interrupts the wait.
  static absl::StatusOr<FileLock> Acquire(const std::filesystem::path& path);
  // nullopt when somebody else holds it.
  static absl::StatusOr<std::optional<FileLock>> TryAcquire(const std::filesystem::path& path);

 private:
  explicit FileLock(Descriptor file) : file_(std::move(file)) {}
  static absl::StatusOr<FileLock> Open(const std::filesystem::path& path);

  Descriptor file_;
};

}  // namespace bkm

#endif  // HARNESS_STORE_FILE_LOCK_H_
