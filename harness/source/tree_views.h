// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SOURCE_TREE_VIEWS_H_
#define HARNESS_SOURCE_TREE_VIEWS_H_

#include <filesystem>
#include <functional>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/source/git_objects.h"
#include "harness/source/package_metadata.h"
#include "harness/source/tree_rules.h"

namespace bkm {

// Fills a folder with a commit's files without a checkout. Each file content is kept once below
// `blobs`, by its git id and beside its compiled Python, and hard-linked into the trees that have
// it. It is copied where a link is not possible (another file system, too many links). Thread-safe;
// several processes may share `blobs`.
//
// A kept file is verified before its first link by this object: content by its git id, compiled
// Python by the digest at its end. A damaged file is set aside, reported, and made again.
class TreeViews {
 public:
  // Takes a sentence about a kept file that was damaged.
  using Report = std::function<void(const std::string&)>;

  // `blobs` is a folder of the cache.
  TreeViews(std::filesystem::path blobs, PackageReader reader, Report report = {})
      : blobs_(std::move(blobs)), reader_(std::move(reader)), report_(std::move(report)) {}

  // Fills the empty folder `tree` with `entries` of `repository` and the compiled Python of those
  // below `package`, except where the commit has a __pycache__ of its own. A symbolic link that
  // leads out of the tree becomes a dead one. Leaves out documents that the repository lacks; any
  // other missing file, and a tree that is too large, is a fault of the subject. Returns the
  // entries that `tree` now has.
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
    TreeMeter meter{TreeBounds()};  // of what is linked
  };
  struct Scope {
    std::string package;
    std::string tag;
    std::set<std::string> own_caches;  // folders in which the commit has a __pycache__
  };

  // The paths below `blobs_` of an entry's content and of its compiled Python.
  static std::string KeptFile(const GitEntry& entry);
  static std::string KeptPython(const GitEntry& entry, const std::string& tag);
  absl::StatusOr<std::string> CacheTag();
  // Whether the kept file is what `sound` says of its content. False, too, if there is none.
  bool Verify(const std::string& kept, const std::function<bool(const std::string&)>& sound);
  // Keeps the contents of `unknown`. Returns the ids of the documents that the repository lacks.
  absl::StatusOr<std::set<std::string>> Fetch(const GitRepository& repository, GitObjects& objects,
                                              const std::vector<GitEntry>& unknown) const;
  absl::Status Compile(const std::vector<GitEntry>& entries, const std::string& tag) const;
  absl::StatusOr<Rest> Link(std::span<const GitEntry> entries, const Scope& scope,
                            const std::filesystem::path& tree);
  // Like Link, with several threads.
  absl::StatusOr<Rest> LinkSideBySide(const std::vector<GitEntry>& entries, const Scope& scope,
                                      const std::filesystem::path& tree);
  // False when the entry was not compiled yet.
  absl::StatusOr<bool> LinkPython(const GitEntry& entry, const std::string& tag, Linker& linker);

  const std::filesystem::path blobs_;
  const PackageReader reader_;
  const Report report_;
  std::mutex mutex_;
  std::string tag_;  // Python's cache tag; empty until it is known
  // Whether a compiled file is empty, because Python cannot parse its source.
  std::unordered_map<std::string, bool> empty_;
  std::unordered_set<std::string> verified_;  // kept files
};

}  // namespace bkm

#endif  // HARNESS_SOURCE_TREE_VIEWS_H_
