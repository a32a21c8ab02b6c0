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
  class Linker;
  // What could not be linked yet: contents that are not kept, Python that was not compiled.
  struct Rest {
    std::vector<GitEntry> unknown;
    std::vector<GitEntry> uncompiled;
  };

  // Where an entry's content is kept, and its compiled Python, below `blobs_`.
  static std::string KeptFile(const GitEntry& entry);
  static std::string KeptPython(const GitEntry& entry, const std::string& tag);
  absl::StatusOr<std::string> CacheTag();
  // Keeps the contents of `unknown`. Returns the ids of documents that the repository lacks.
  absl::StatusOr<std::set<std::string>> Fetch(const GitRepository& repository, GitObjects& objects,
                                              const std::vector<GitEntry>& unknown) const;
  absl::Status Compile(const std::vector<GitEntry>& entries, const std::string& tag) const;
  absl::StatusOr<Rest> Link(std::span<const GitEntry> entries, const std::string& package,
                            const std::string& tag, const std::filesystem::path& tree);
  // As Link, by several threads.
  absl::StatusOr<Rest> LinkSideBySide(const std::vector<GitEntry>& entries,
                                      const std::string& package, const std::string& tag,
                                      const std::filesystem::path& tree);
  // False: it was not compiled yet.
  absl::StatusOr<bool> LinkPython(const GitEntry& entry, const std::string& tag, Linker& linker);

  const std::filesystem::path blobs_;
  const PackageReader reader_;
  std::mutex mutex_;
  std::string tag_;  // of compiled files; empty: not asked yet
  // Whether there is nothing in a compiled file, as of one that Python cannot parse.
  std::unordered_map<std::string, bool> empty_;
};

}  // namespace bkm

#endif  // HARNESS_SOURCE_TREE_VIEWS_H_
