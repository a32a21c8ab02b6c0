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

// The folder beside a source in which Python keeps its compiled form.
inline constexpr absl::string_view kBytecodeFolder = "__pycache__";

// The files of a source tree, except what git and our own compilation of Python add to it. Each has
// a path and an id: git's blob id of the content, wherever the tree came from, and a mark of its
// kind. For a symbolic link, the content is the path of its target. A folder without files is an
// entry of its own, whose path ends in "/".
class TreeListing {
 public:
  using File = std::pair<std::string, std::string>;  // path, id

  // Ends the id of an executable file, and of a symbolic link.
  static constexpr char kExecutable = '*';
  static constexpr char kLink = '@';

  TreeListing() : TreeListing(std::vector<File>()) {}
  // `files` may be in any order.
  explicit TreeListing(std::vector<File> files);

  // Reads and hashes every file below `folder`. Leaves out compiled Python whose source is beside
  // its __pycache__.
  static absl::StatusOr<TreeListing> OfFolder(const std::filesystem::path& folder);

  // The id of the file at `path`; null when there is no such file.
  const std::string* Find(absl::string_view path) const;
  bool HasFolder(absl::string_view path) const;
  // The names directly below `folder` ("" is the root), sorted. Names of folders end in "/".
  std::vector<std::string> Names(absl::string_view folder) const;
  // The files whose path starts with `prefix` and has no "/" after it.
  std::vector<File> StartingWith(const std::string& prefix) const;

  const std::vector<File>& files() const { return files_; }
  // SHA-256 of all paths and ids: equal for equal trees only.
  const std::string& digest() const { return digest_; }

 private:
  std::vector<File>::const_iterator FirstBelow(const std::string& prefix) const;

  std::vector<File> files_;  // sorted by path
  std::string digest_;
};

// Git's blob id of a file with this content.
std::string BlobId(absl::string_view content);

// The source of a compiled file, such as "a/b.py" of "a/__pycache__/b.cpython-311.pyc"; "" for
// every other path.
std::string SourceOfCompiled(absl::string_view path);

}  // namespace bkm

#endif  // HARNESS_SOURCE_TREE_LISTING_H_
