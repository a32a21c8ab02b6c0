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

// The files of a source tree, except those that Python and git create (__pycache__, *.pyc, .git).
// Each has a path and an id: git's blob id of the content, wherever the tree came from. For a
// symbolic link, the content is the path of its target.
class TreeListing {
 public:
  using File = std::pair<std::string, std::string>;  // path, id

  TreeListing() = default;
  // `files` may be in any order.
  explicit TreeListing(std::vector<File> files);

  // Reads and hashes every file below `folder`.
  static absl::StatusOr<TreeListing> OfFolder(const std::filesystem::path& folder);

  // The id of the file at `path`; null when there is no such file.
  const std::string* Find(absl::string_view path) const;
  bool HasFolder(absl::string_view path) const;
  // The names directly below `folder` ("" is the root), sorted. Names of folders end in "/".
  std::vector<std::string> Names(absl::string_view folder) const;

  const std::vector<File>& files() const { return files_; }

 private:
  std::vector<File>::const_iterator FirstBelow(const std::string& prefix) const;

  std::vector<File> files_;  // sorted by path
};

// Git's blob id of a file with this content.
std::string BlobId(absl::string_view content);

}  // namespace bkm

#endif  // HARNESS_SOURCE_TREE_LISTING_H_
