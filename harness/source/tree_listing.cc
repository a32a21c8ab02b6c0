// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/tree_listing.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace fs = std::filesystem;

TreeListing::TreeListing(std::vector<File> files) : files_(std::move(files)) {
  std::sort(files_.begin(), files_.end());
}

absl::StatusOr<TreeListing> TreeListing::OfFolder(const fs::path& folder) {
  std::vector<File> files;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    const fs::path& path = it->path();
    const std::string name = path.filename();
    if (name == "__pycache__" || name == ".git") {
      it.disable_recursion_pending();
      continue;
    }
    const std::string relative = path.lexically_relative(folder).string();
    if (it->is_symlink(error)) {
      files.emplace_back(relative, BlobId(fs::read_symlink(path, error).string()));
    } else if (it->is_regular_file(error) && path.extension() != ".pyc") {
      ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
      files.emplace_back(relative, BlobId(content));
    }
  }
  if (error)
    return absl::UnavailableError(
        absl::StrCat("cannot read the folder ", folder.string(), ": ", error.message()));
  return TreeListing(std::move(files));
}

std::vector<TreeListing::File>::const_iterator TreeListing::FirstBelow(
    const std::string& prefix) const {
  return std::lower_bound(
      files_.begin(), files_.end(), prefix,
      [](const File& file, const std::string& text) { return file.first < text; });
}

const std::string* TreeListing::Find(absl::string_view path) const {
  const auto it = FirstBelow(std::string(path));
  return it != files_.end() && absl::string_view(it->first) == path ? &it->second : nullptr;
}

bool TreeListing::HasFolder(absl::string_view path) const {
  if (path.empty()) return true;
  const std::string prefix = absl::StrCat(path, "/");
  const auto it = FirstBelow(prefix);
  return it != files_.end() && absl::StartsWith(it->first, prefix);
}

std::vector<std::string> TreeListing::Names(absl::string_view folder) const {
  const std::string prefix = folder.empty() ? "" : absl::StrCat(folder, "/");
  std::vector<std::string> names;
  for (auto it = FirstBelow(prefix); it != files_.end() && absl::StartsWith(it->first, prefix);
       ++it) {
    const std::string rest = it->first.substr(prefix.size());
    const std::string name =
        rest.substr(0, rest.find('/') == rest.npos ? rest.npos : rest.find('/') + 1);
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string BlobId(absl::string_view content) {
  return Sha1(absl::StrCat("blob ", content.size(), absl::string_view("\0", 1), content));
}

}  // namespace bkm
