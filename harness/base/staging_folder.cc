// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/staging_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"

namespace bkm {

namespace fs = std::filesystem;

namespace {

Descriptor OpenFolder(const fs::path& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// Removes the folders of processes that have ended.
void RemoveStale(const fs::path& parent, const std::string& prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (auto it = fs::directory_iterator(parent, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    if (absl::StartsWith(it->path().filename().string(), prefix)) found.push_back(it->path());
  }
  for (const fs::path& path : found) {
    const Descriptor folder = OpenFolder(path);
    struct stat info = {};
    if (!folder.valid() || ::fstat(folder.get(), &info) != 0 || info.st_uid != ::geteuid())
      continue;
    if (::flock(folder.get(), LOCK_EX | LOCK_NB) == 0) RemoveTree(path).IgnoreError();
  }
}

}  // namespace

absl::StatusOr<StagingFolder> StagingFolder::Create(const fs::path& parent,
                                                    absl::string_view purpose) {
  const std::string prefix = absl::StrCat(".bkm-", purpose, "-");
  RemoveStale(parent, prefix);
  for (;;) {
    ASSIGN_OR_RETURN(fs::path path, CreateTempDirectory(parent, prefix));
    Descriptor folder = OpenFolder(path);
    if (!folder.valid() && errno != ENOENT) {
      return absl::UnavailableError(
          absl::StrCat("cannot open ", path.string(), ": ", std::strerror(errno)));
    }
    // Until it is locked, another process may take it for a stale one, and remove it. A file system
    // without locks leaves it to its owner alone.
    struct stat info = {};
    const bool is_taken = !folder.valid() ||
                          (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) ||
                          (::fstat(folder.get(), &info) == 0 && info.st_nlink == 0);
    if (!is_taken) return StagingFolder(std::move(path), std::move(folder));
  }
}

StagingFolder::~StagingFolder() {
  if (!path_.empty()) RemoveTree(path_).IgnoreError();
}

}  // namespace bkm
