// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/store/folder_cache.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/check.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/store/checksums.h"
#include "harness/store/file_lock.h"

namespace bkm {
namespace fs = std::filesystem;

fs::path FolderCache::Marker(absl::string_view key) const {
  return root_ / absl::StrCat(".", key, ".complete");
}

fs::path FolderCache::Lock(absl::string_view key) const {
  return root_ / absl::StrCat(".", key, ".lock");
}

std::optional<fs::path> FolderCache::Get(absl::string_view key) const {
  HARNESS_CHECK(!key.empty() && key[0] != '.' && !absl::StrContains(key, "/")) << key;
  const fs::path folder = root_ / std::string(key);
  std::error_code error;
  if (!fs::exists(Marker(key), error) || !fs::is_directory(folder, error)) return std::nullopt;
  if (report_ && !IsSound(key)) return std::nullopt;
  // Best effort: a shared cache may be read-only.
  fs::last_write_time(Marker(key), fs::file_time_type::clock::now(), error);
  return folder;
}

bool FolderCache::IsSound(absl::string_view key) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (verified_.contains(key)) return true;
  const fs::path folder = root_ / std::string(key);
  const absl::Status status = VerifyManifest(folder);
  // Folders of older versions have no manifest.
  if (status.ok() || absl::IsNotFound(status)) {
    verified_.emplace(key);
    return true;
  }
  // The marker goes first: without it, the folder counts as incomplete whatever happens next.
  std::error_code error;
  fs::remove(Marker(key), error);
  const absl::StatusOr<fs::path> aside = bkm::SetAside(folder);
  report_(absl::StrCat(
      status.message(), ": making it again",
      aside.ok() ? absl::StrCat("; the old folder is ", aside->string()) : std::string()));
  return false;
}

absl::StatusOr<fs::path> FolderCache::GetOrMake(
    absl::string_view key, const std::function<absl::Status(const fs::path&)>& make) const {
  if (const std::optional<fs::path> folder = Get(key)) return *folder;
  ASSIGN_OR_RETURN(const FileLock lock, FileLock::Acquire(Lock(key)));
  if (const std::optional<fs::path> folder = Get(key)) return *folder;  // filled while we waited
  const fs::path folder = root_ / std::string(key);
  RETURN_IF_ERROR(RemoveTree(folder));
  RETURN_IF_ERROR(CreateDirectories(folder));
  absl::Status status = make(folder);
  // The marker must not survive a power cut that the content does not survive.
  if (status.ok() && report_) status = WriteManifestUnsynced(folder);
  if (status.ok()) status = SyncTree(folder);
  if (status.ok()) status = WriteFile(Marker(key), "");
  if (status.ok()) return folder;
  RemoveTree(folder).IgnoreError();
  return status;
}

absl::Status FolderCache::SetAside(absl::string_view key) const {
  ASSIGN_OR_RETURN(const FileLock lock, FileLock::Acquire(Lock(key)));
  std::error_code error;
  fs::remove(Marker(key), error);
  const fs::path folder = root_ / std::string(key);
  return fs::exists(folder, error) ? bkm::SetAside(folder).status() : absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> FolderCache::Collect(
    std::chrono::system_clock::time_point before) const {
  const auto cutoff =
      fs::file_time_type::clock::now() + std::chrono::duration_cast<fs::file_time_type::duration>(
                                             before - std::chrono::system_clock::now());
  std::vector<std::string> removed;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(root_, error)) {
    const std::string key = entry.path().filename().string();
    if (key[0] == '.' || !entry.is_directory(error)) continue;
    ASSIGN_OR_RETURN(const std::optional<FileLock> lock, FileLock::TryAcquire(Lock(key)));
    if (!lock) continue;
    const bool complete = fs::exists(Marker(key), error);
    const auto used = fs::last_write_time(complete ? Marker(key) : entry.path(), error);
    if (error || used >= cutoff) continue;
    // The marker goes first, so that an interrupted removal cannot leave a folder that looks
    // complete.
    fs::remove(Marker(key), error);
    RETURN_IF_ERROR(SyncFolder(root_));
    RETURN_IF_ERROR(RemoveTree(entry.path()));
    removed.push_back(key);
  }
  std::sort(removed.begin(), removed.end());
  return removed;
}

}  // namespace bkm
