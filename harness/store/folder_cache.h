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

// Folders that are made once and then only read: source trees, environments, probes. Any number of
// processes and threads may share one cache.
//
// `root/KEY` is made in place, under a lock, and counts only once the marker `root/.KEY.complete`
// stands beside it: what a killed process left half made is made again. In place, because a virtual
// environment and compiled Python hold their own paths. The marker's time is that of the last use.
class FolderCache {
 public:
  explicit FolderCache(std::filesystem::path root) : root_(std::move(root)) {}

  // The folder of `key`, if it is complete.
  std::optional<std::filesystem::path> Get(absl::string_view key) const;

  // The folder of `key`; if it is not complete, `make` fills the given new, empty folder first. One
  // caller makes, others wait. When `make` fails nothing is kept.
  absl::StatusOr<std::filesystem::path> GetOrMake(
      absl::string_view key,
      const std::function<absl::Status(const std::filesystem::path&)>& make) const;

  // Removes what nobody has asked for since `before`, and what was left half made before then.
  // Returns the keys. A folder that is being made is left alone.
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
