// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_STORE_FOLDER_CACHE_H_
#define HARNESS_STORE_FOLDER_CACHE_H_

#include <chrono>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace bkm {

// A cache of folders that are filled once and then only read: source trees, environments, probes.
// Any number of processes and threads may share one cache.
//
// `root/KEY` is filled in place, under a lock, because a virtual environment and compiled Python
// contain their own paths. It is valid only with the marker `root/.KEY.complete` beside it, so a
// folder that a killed process left incomplete is filled again. The marker's time is the last use.
// The content is synced before the marker is written: a power cut leaves no complete-looking
// folder.
//
// A checked cache writes a manifest into each folder, and verifies a folder at its first use by
// this object. A damaged folder is set aside, reported, and made again.
class FolderCache {
 public:
  // Takes a sentence about a folder that was damaged.
  using Report = std::function<void(const std::string&)>;

  explicit FolderCache(std::filesystem::path root) : root_(std::move(root)) {}
  // A checked cache.
  FolderCache(std::filesystem::path root, Report report)
      : root_(std::move(root)), report_(std::move(report)) {}

  // The folder of `key`; nullopt unless it is complete and, in a checked cache, sound.
  std::optional<std::filesystem::path> Get(absl::string_view key) const;

  // The folder of `key`. If it is not complete, `make` fills an empty folder first while concurrent
  // callers wait. If `make` fails, the folder is removed.
  absl::StatusOr<std::filesystem::path> GetOrMake(
      absl::string_view key,
      const std::function<absl::Status(const std::filesystem::path&)>& make) const;

  // Takes a folder that is wrong or damaged out of the cache: renames it
  // (harness/store/checksums.h), so that it can be examined until it is collected. A missing one is
  // not an error.
  absl::Status SetAside(absl::string_view key) const;

  // Removes the folders that were last used, or left incomplete, before `before`, and returns their
  // keys. Leaves a folder alone while it is being filled.
  absl::StatusOr<std::vector<std::string>> Collect(
      std::chrono::system_clock::time_point before) const;

  const std::filesystem::path& root() const { return root_; }

 private:
  std::filesystem::path Marker(absl::string_view key) const;
  std::filesystem::path Lock(absl::string_view key) const;

  bool IsSound(absl::string_view key) const;

  std::filesystem::path root_;
  Report report_;  // null: the cache is not checked
  mutable std::mutex mutex_;
  mutable std::set<std::string, std::less<>> verified_;  // keys
};

}  // namespace bkm

#endif  // HARNESS_STORE_FOLDER_CACHE_H_
