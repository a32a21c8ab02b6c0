// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SOURCE_TREE_VIEWS_H_
#define HARNESS_SOURCE_TREE_VIEWS_H_

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "harness/source/git_objects.h"
#include "harness/source/package_metadata.h"

namespace bkm {

// Makes a commit's files appear in a folder without a checkout: each content is kept once, by its
// git id, beside its compiled Python, and linked to where a commit has it. Where links end (another
// file system, too many of them) it is copied. Thread-safe; several processes may share `blobs`.
class TreeViews {
 public:
  // `blobs` is a folder of the cache.
  TreeViews(std::filesystem::path blobs, PackageReader reader)
      : blobs_(std::move(blobs)), reader_(std::move(reader)) {}

  // Fills the empty folder `tree` with `entries` of `repository`, paths as given; Python below
  // `package` comes compiled. Documents that the repository lacks are left out; of other files that
  // is NotFound. Returns the entries that are there.
  absl::StatusOr<std::vector<GitEntry>> Make(const GitRepository& repository, GitObjects& objects,
                                             const std::string& commit,
                                             const std::vector<GitEntry>& entries,
                                             const std::string& package,
                                             const std::filesystem::path& tree);

 private:
  std::filesystem::path FileOf(const GitEntry& entry) const;
  absl::StatusOr<std::string> CacheTag();
  // Files of `entries` that are not kept yet.
  std::vector<GitEntry> Unknown(const std::vector<GitEntry>& entries) const;
  // The entry's compiled Python; empty when it has none.
  std::string CompiledFileOf(const GitEntry& entry, const std::string& tag);
  // Ids of documents that the repository lacks.
  absl::StatusOr<std::vector<std::string>> Fetch(const GitRepository& repository,
                                                 GitObjects& objects,
                                                 const std::vector<GitEntry>& unknown) const;
  absl::Status Compile(const std::vector<GitEntry>& entries, const std::string& package,
                       const std::string& tag) const;

  const std::filesystem::path blobs_;
  const PackageReader reader_;
  std::mutex mutex_;
  std::string tag_;                       // of compiled files; empty: not asked yet
  std::map<std::string, bool> compiled_;  // by compiled file: whether there is anything in it
};

}  // namespace bkm

#endif  // HARNESS_SOURCE_TREE_VIEWS_H_
