// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SOURCE_TREE_LISTING_H_
#define HARNESS_SOURCE_TREE_LISTING_H_

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace bkm {

// What a source tree holds: each file's path and content id, without what Python and git leave
// there (__pycache__, *.pyc, .git). The id is git's for a blob, whatever the tree came from; a
// link's is that of its target's text.
class TreeListing {
 public:
  using File = std::pair<std::string, std::string>;  // path, id

  TreeListing() = default;
  // In any order.
  explicit TreeListing(std::vector<File> files);

  // Reads and hashes every file below `folder`.
  static absl::StatusOr<TreeListing> OfFolder(const std::filesystem::path& folder);

  // The id of the file at `path`; null when there is none.
  const std::string* Find(absl::string_view path) const;
  bool HasFolder(absl::string_view path) const;
  // The names right below `folder` ("" is the root), sorted, folders with "/" at their end.
  std::vector<std::string> Names(absl::string_view folder) const;

  const std::vector<File>& files() const { return files_; }

 private:
  std::vector<File>::const_iterator FirstBelow(const std::string& prefix) const;

  std::vector<File> files_;  // sorted by path
};

// Git's id of a file with this content.
std::string BlobId(absl::string_view content);

}  // namespace bkm

#endif  // HARNESS_SOURCE_TREE_LISTING_H_
