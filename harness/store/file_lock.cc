// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/store/file_lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"

namespace bkm {

namespace {

absl::Status CannotLock(const std::filesystem::path& path) {
  return absl::UnavailableError(
      absl::StrCat("cannot lock ", path.string(), ": ", std::strerror(errno)));
}

std::string HostName() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

// Who holds a lock, as its file says: the process and its machine.
struct Holder {
  pid_t pid = 0;  // 0: unknown
  std::string host;
  bool IsDead() const {
    return pid > 0 && host == HostName() && ::kill(pid, 0) != 0 && errno == ESRCH;
  }
};

Holder ReadHolder(const std::filesystem::path& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  Holder holder;
  const std::vector<std::string> words =
      absl::StrSplit(text.value_or(""), absl::ByAnyChar(" \n"), absl::SkipEmpty());
  if (words.size() == 2 && absl::SimpleAtoi(words[0], &holder.pid)) holder.host = words[1];
  return holder;
}

// How long the programs of a killed process may take to end, and a new holder to write its name.
constexpr std::chrono::seconds kWaitForTheDead(10);
constexpr std::chrono::milliseconds kPause(10);

}  // namespace

FileLock::~FileLock() {
  // A program that still runs holds the same open file: closing ours would not unlock it.
  if (held_ && file_.valid()) ::flock(file_.get(), LOCK_UN);
}

absl::StatusOr<FileLock> FileLock::AcquireAlone(const std::filesystem::path& path,
                                                absl::string_view what) {
  const auto until = std::chrono::steady_clock::now() + kWaitForTheDead;
  Holder holder;
  int unnamed = 0;
  for (;;) {
    ASSIGN_OR_RETURN(std::optional<FileLock> lock, TryAcquire(path));
    if (lock) {
      const std::string name = absl::StrCat(::getpid(), " ", HostName(), "\n");
      if (::ftruncate(lock->file_.get(), 0) != 0 || !WriteAll(lock->file_.get(), name))
        return CannotLock(path);
      lock->held_.emplace(lock->file_.get());
      return *std::move(lock);
    }
    holder = ReadHolder(path);
    const bool waits = holder.IsDead() || (holder.pid == 0 && ++unnamed < 100);
    if (!waits || std::chrono::steady_clock::now() > until) break;
    std::this_thread::sleep_for(kPause);
  }
  const std::string by =
      holder.pid ? absl::StrCat("process ", holder.pid, " on ", holder.host) : "another process";
  return absl::FailedPreconditionError(
      absl::StrCat(what, " is in use by ", by, ": wait until that process has ended, or stop it"));
}

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
