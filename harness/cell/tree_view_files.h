// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_TREE_VIEW_FILES_H_
#define HARNESS_CELL_TREE_VIEW_FILES_H_

#include <sys/stat.h>

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/descriptor.h"

namespace bkm {

// The files behind a TreeView, read lazily: each folder is listed at most once. Nothing outside the
// tree is opened, whatever its links say. Files that are neither regular, links nor folders do not
// exist. Functions return errno values, as the kernel expects.
class TreeFiles {
 public:
  enum class Kind { kFolder, kFile, kLink };
  using Id = uint64_t;
  static constexpr Id kRoot = 1;

  struct Node {
    std::string path;  // below the tree; "" is the tree itself
    Kind kind = Kind::kFolder;
    bool executable = false;
    int64_t size = 0;
    Id parent = kRoot;
    // Of a folder, once it is listed. 0: not looked up yet.
    bool listed = false;
    std::map<std::string, std::pair<Kind, Id>> children;
  };

  static absl::StatusOr<TreeFiles> Open(const std::filesystem::path& tree);

  bool Has(Id id) const { return id >= kRoot && id - kRoot < nodes_.size(); }
  const Node& node(Id id) const { return nodes_[id - kRoot]; }
  // What stat(2) shows.
  struct stat StatOf(Id id) const;

  // Fills node(id).children. Returns 0 or an errno.
  int List(Id id);
  // The child of a folder: 0 if there is none. Returns 0 or an errno.
  int Find(Id folder, const std::string& name, Id& found);
  // The forms of a module in a folder, a line for each: what the import system could take. Returns
  // EOPNOTSUPP after all if one of them is a link, whose target decides; 0 or another errno.
  int Forms(Id folder, const std::string& module, std::string& forms);
  int ReadLink(Id link, std::string& target) const;
  // Reads at most bytes.size() bytes at `offset`, and sets the number read. Returns 0 or an errno.
  int Read(Id file, int64_t offset, size_t size, std::string& bytes);

 private:
  explicit TreeFiles(Descriptor root) : root_(std::move(root)) { nodes_.emplace_back(); }
  Descriptor OpenBelow(const std::string& path, int flags) const;

  Descriptor root_;
  std::deque<Node> nodes_;
  Id open_ = 0;  // the file of open_file_
  Descriptor open_file_;
};

// The inode number that a view shows for a path.
ino_t InodeOfPath(const std::string& path);
std::string JoinPath(absl::string_view folder, absl::string_view name);

}  // namespace bkm

#endif  // HARNESS_CELL_TREE_VIEW_FILES_H_
