// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/store/garbage.h"

#include <algorithm>

#include "harness/base/status_macros.h"
#include "harness/store/folder_cache.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

// Trees hard-link to these files: a file with one link is in no tree.
void RemoveUnlinked(const fs::path& blobs, std::chrono::system_clock::time_point before) {
  const fs::file_time_type cutoff = std::chrono::file_clock::from_sys(before);
  std::error_code error;
  std::vector<fs::path> unlinked;
  for (const auto& entry : fs::recursive_directory_iterator(blobs, error)) {
    if (entry.is_regular_file(error) && entry.hard_link_count(error) == 1 &&
        entry.last_write_time(error) < cutoff)
      unlinked.push_back(entry.path());
  }
  for (const fs::path& file : unlinked) fs::remove(file, error);
}

// Removes folders that nobody has written to since `before`. Their content can be created again or
// was only evidence.
std::vector<std::string> RemoveOldFolders(const fs::path& root,
                                          std::chrono::system_clock::time_point before) {
  const fs::file_time_type cutoff = std::chrono::file_clock::from_sys(before);
  std::error_code error;
  std::vector<std::string> removed;
  for (const auto& folder : fs::directory_iterator(root, error)) {
    fs::file_time_type last = folder.last_write_time(error);
    for (const auto& entry : fs::directory_iterator(folder, error))
      last = std::max(last, entry.last_write_time(error));
    if (last < cutoff) removed.push_back(folder.path().filename());
  }
  for (const std::string& name : removed) fs::remove_all(root / name, error);
  std::sort(removed.begin(), removed.end());
  return removed;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CollectGarbage(
    const std::filesystem::path& cache, std::chrono::system_clock::time_point before) {
  std::vector<std::string> removed;
  for (const std::string kind :
       {"environments", "observations", "probes", "ray", "trees", "wheels"}) {
    ASSIGN_OR_RETURN(const std::vector<std::string> keys,
                     FolderCache(cache / kind).Collect(before));
    for (const std::string& key : keys) removed.push_back(kind + "/" + key);
  }
  // Runs of bkm check and the bytecode it compiled, parts of cells of other machines, git objects
  // of patched trees, and leftovers of uv and of crashes.
  for (const std::string kind : {"bytecode", "checks", "parts", "patches", "tmp"}) {
    for (const std::string& name : RemoveOldFolders(cache / kind, before))
      removed.push_back(kind + "/" + name);
  }
  RemoveUnlinked(cache / "blobs", before);
  return removed;
}

}  // namespace bkm
