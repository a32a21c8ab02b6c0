// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SOURCE_TREE_VIEWS_H_
#define HARNESS_SOURCE_TREE_VIEWS_H_

#include <filesystem>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/source/git_objects.h"
#include "harness/source/package_metadata.h"

namespace bkm {

// Fills a folder with a commit's files without a checkout. Each file content is kept once below
// `blobs`, by its git id and beside its compiled Python, and hard-linked into the trees that have
// it. It is copied where a link is not possible (another file system, too many links). Thread-safe;
// several processes may share `blobs`.
class TreeViews {
 public:
  // `blobs` is a folder of the cache.
  TreeViews(std::filesystem::path blobs, PackageReader reader)
      : blobs_(std::move(blobs)), reader_(std::move(reader)) {}

  // Fills the empty folder `tree` with `entries` of `repository` and the compiled Python of those
  // below `package`. Leaves out documents that the repository lacks; any other missing file is
  // NotFound. Returns the entries that `tree` now has.
  absl::StatusOr<std::vector<GitEntry>> Make(const GitRepository& repository, GitObjects& objects,
                                             const std::string& commit,
                                             const std::vector<GitEntry>& entries,
                                             const std::string& package,
                                             const std::filesystem::path& tree);

 private:
  class Linker;
  // Entries that could not be linked yet, because the content is not kept or not compiled.
  struct Rest {
    std::vector<GitEntry> unknown;
    std::vector<GitEntry> uncompiled;
  };

  // The paths below `blobs_` of an entry's content and of its compiled Python.
  static std::string KeptFile(const GitEntry& entry);
  static std::string KeptPython(const GitEntry& entry, const std::string& tag);
  absl::StatusOr<std::string> CacheTag();
  // Keeps the contents of `unknown`. Returns the ids of the documents that the repository lacks.
  absl::StatusOr<std::set<std::string>> Fetch(const GitRepository& repository, GitObjects& objects,
                                              const std::vector<GitEntry>& unknown) const;
  absl::Status Compile(const std::vector<GitEntry>& entries, const std::string& tag) const;
  absl::StatusOr<Rest> Link(std::span<const GitEntry> entries, const std::string& package,
                            const std::string& tag, const std::filesystem::path& tree);
  // Like Link, with several threads.
  absl::StatusOr<Rest> LinkSideBySide(const std::vector<GitEntry>& entries,
                                      const std::string& package, const std::string& tag,
                                      const std::filesystem::path& tree);
  // False when the entry was not compiled yet.
  absl::StatusOr<bool> LinkPython(const GitEntry& entry, const std::string& tag, Linker& linker);

  const std::filesystem::path blobs_;
  const PackageReader reader_;
  std::mutex mutex_;
  std::string tag_;  // Python's cache tag; empty until it is known
  // Whether a compiled file is empty, because Python cannot parse its source.
  std::unordered_map<std::string, bool> empty_;
};

}  // namespace bkm

#endif  // HARNESS_SOURCE_TREE_VIEWS_H_
