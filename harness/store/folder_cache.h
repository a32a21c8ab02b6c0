// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_STORE_FOLDER_CACHE_H_
#define HARNESS_STORE_FOLDER_CACHE_H_

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
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
class FolderCache {
 public:
  explicit FolderCache(std::filesystem::path root) : root_(std::move(root)) {}

  // The folder of `key`; nullopt unless it is complete.
  std::optional<std::filesystem::path> Get(absl::string_view key) const;

  // The folder of `key`. If it is not complete, `make` fills an empty folder first while concurrent
  // callers wait. If `make` fails, the folder is removed.
  absl::StatusOr<std::filesystem::path> GetOrMake(
      absl::string_view key,
      const std::function<absl::Status(const std::filesystem::path&)>& make) const;

  // Removes the folders that were last used, or left incomplete, before `before`, and returns their
  // keys. Leaves a folder alone while it is being filled.
  absl::StatusOr<std::vector<std::string>> Collect(
      std::chrono::system_clock::time_point before) const;

  const std::filesystem::path& root() const { return root_; }

 private:
  std::filesystem::path Marker(absl::string_view key) const;
  std::filesystem::path Lock(absl::string_view key) const;

  std::filesystem::path root_;
};

}  // namespace bkm

#endif  // HARNESS_STORE_FOLDER_CACHE_H_
