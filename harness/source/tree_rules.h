// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SOURCE_TREE_RULES_H_
#define HARNESS_SOURCE_TREE_RULES_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace bkm {

// What a source tree may be at most. A tree beyond a bound is a fault of its subject.
struct TreeBounds {
  size_t entries = 100'000;
  int depth = 64;                            // folders above a file
  size_t path = 1024;                        // bytes
  uintmax_t file = uintmax_t{256} << 20;     // bytes
  uintmax_t all_files = uintmax_t{1} << 30;  // bytes, each link to a content counted
};
// For a folder that the user names by `path:`. It may hold data and environments, too.
inline constexpr TreeBounds kPathBounds = {.entries = 1'000'000,
                                           .depth = 128,
                                           .path = 3072,
                                           .file = uintmax_t{8} << 30,
                                           .all_files = uintmax_t{16} << 30};
// Names stay short enough for the compiled file of a module: NAME.cpython-311.pyc.
inline constexpr size_t kLongestName = 240;
// Python reads a whole source file at once, and needs a hundred times its size.
inline constexpr uintmax_t kLargestCompiled = uintmax_t{8} << 20;

// Whether an entry of a tree may have this name: not empty, ".", ".." or ".git" (in any case),
// without "/" and NUL. Like git on Linux, it knows nothing of names that only other file systems
// take for ".git" ("git~1", or with characters that HFS+ ignores).
absl::Status CheckName(absl::string_view name);
// The stricter rule for names that are written to disk: UTF-8 without control characters, and
// within the bound.
absl::Status CheckWrittenName(absl::string_view name);
// Whether a path and its depth are within the bounds.
absl::Status CheckPath(absl::string_view path, const TreeBounds& bounds);

// Whether a symbolic link at `path` in a tree may have this target at all.
absl::Status CheckLink(absl::string_view path, absl::string_view target);
// Whether a symbolic link leads out of its tree. Looks at nothing but the link, so that equal links
// are equal in all trees. Therefore ".." after a name counts as leading out: the name may be a
// link.
bool LeavesTree(absl::string_view path, absl::string_view target);
// What a symbolic link that leads out of the tree names instead: nothing.
inline constexpr char kDeadTarget[] = ".bkm-outside-of-the-tree";

// Counts entries and bytes of one tree.
class TreeMeter {
 public:
  explicit TreeMeter(const TreeBounds& bounds) : bounds_(bounds) {}
  absl::Status CountEntry();
  absl::Status CountFile(absl::string_view path, uintmax_t bytes);
  // Adds what another meter with the same bounds counted.
  absl::Status Add(const TreeMeter& other);

 private:
  absl::Status CheckBytes() const;

  TreeBounds bounds_;
  size_t entries_ = 0;
  uintmax_t bytes_ = 0;
};

// A file or link found on disk.
struct FoundFile {
  std::string path;  // relative to the folder
  bool is_link = false;
};
// Every regular file and link below `folder`, sorted by path, except in the folders that Python and
// git create (__pycache__, .git). Never follows a link, leaves out pipes, sockets and devices, and
// reads no content. A folder beyond the bounds is a fault of its subject.
absl::Status FindFiles(const std::filesystem::path& folder, const TreeBounds& bounds,
                       std::vector<FoundFile>& files);

}  // namespace bkm

#endif  // HARNESS_SOURCE_TREE_RULES_H_
