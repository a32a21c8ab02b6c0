// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_STORE_FILE_LOCK_H_
#define HARNESS_STORE_FILE_LOCK_H_

#include <filesystem>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/descriptor.h"
#include "harness/base/keeper.h"

namespace bkm {

// An exclusive lock among processes and threads, held until the object or the process ends. The
// file is never removed: otherwise two processes could hold locks on two files of the same name.
class FileLock {
 public:
  // Waits for the lock. Creates the file and its folders. Cancelled when a signal interrupts the
  // wait.
  static absl::StatusOr<FileLock> Acquire(const std::filesystem::path& path);
  // Like Acquire, but another holder is an error: FailedPrecondition names its process and machine
  // and what it holds, `what`. Waits only for the programs of a holder that has died. Programs that
  // this process starts hold the lock, too: it lasts until all of them have ended.
  static absl::StatusOr<FileLock> AcquireAlone(const std::filesystem::path& path,
                                               absl::string_view what);
  // Does not wait: nullopt when another holds the lock.
  static absl::StatusOr<std::optional<FileLock>> TryAcquire(const std::filesystem::path& path);

  ~FileLock();
  FileLock(FileLock&&) = default;
  FileLock& operator=(FileLock&&) = delete;

 private:
  explicit FileLock(Descriptor file) : file_(std::move(file)) {}
  static absl::StatusOr<FileLock> Open(const std::filesystem::path& path);

  Descriptor file_;
  std::optional<HeldByKeepers> held_;
};

}  // namespace bkm

#endif  // HARNESS_STORE_FILE_LOCK_H_
