// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/tree_listing.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"
#include "harness/source/tree_rules.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

absl::Status CannotRead(const fs::path& path, const std::error_code& error) {
  return absl::UnavailableError(absl::StrCat("cannot read ", path.string(), ": ", error.message()));
}

}  // namespace

TreeListing::TreeListing(std::vector<File> files) : files_(std::move(files)) {
  std::sort(files_.begin(), files_.end());
  std::string all;
  for (const auto& [path, id] : files_)
    absl::StrAppend(&all, id, " ", path.size(), " ", path, "\n");
  digest_ = Sha256(all);
}

absl::StatusOr<TreeListing> TreeListing::OfFolder(const fs::path& folder) {
  std::vector<FoundFile> found;
  RETURN_IF_ERROR(FindFiles(folder, kPathBounds, found));
  std::vector<File> files;
  std::vector<std::string> folders;
  TreeMeter meter(kPathBounds);
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    const fs::path& path = it->path();
    const std::string relative = path.lexically_relative(folder).string();
    RETURN_IF_ERROR(meter.CountEntry());
    RETURN_IF_ERROR(CheckPath(relative, kPathBounds));
    if (it->is_symlink(error)) {
      files.emplace_back(relative, BlobId(fs::read_symlink(path, error).string()) + kLink);
    } else if (path.filename() == ".git") {
      it.disable_recursion_pending();
    } else if (it->is_directory(error)) {
      if (path.filename().string() != kBytecodeFolder) folders.push_back(relative);
    } else if (it->is_regular_file(error)) {
      RETURN_IF_ERROR(meter.CountFile(relative, it->file_size(error)));
      const std::string source = SourceOfCompiled(relative);
      if (!source.empty() && fs::exists(folder / source, error)) continue;
      ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
      const bool executable =
          (it->status(error).permissions() & fs::perms::owner_exec) != fs::perms::none;
      files.emplace_back(relative,
                         BlobId(content) + (executable ? std::string(1, kExecutable) : ""));
    }
  }
  if (error) return CannotRead(folder, error);
  TreeListing listing(std::move(files));
  std::erase_if(folders, [&](const std::string& path) { return listing.HasFolder(path); });
  if (folders.empty()) return listing;
  files = listing.files();
  for (const std::string& path : folders) files.emplace_back(path + "/", "folder");
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

std::vector<TreeListing::File> TreeListing::StartingWith(const std::string& prefix) const {
  std::vector<File> found;
  for (auto it = FirstBelow(prefix); it != files_.end() && absl::StartsWith(it->first, prefix);
       ++it) {
    if (it->first.find('/', prefix.size()) == std::string::npos) found.push_back(*it);
  }
  return found;
}

std::string SourceOfCompiled(absl::string_view path) {
  constexpr absl::string_view kCache = "__pycache__/";
  const size_t cache = path.rfind(kCache);
  if (cache == path.npos || (cache > 0 && path[cache - 1] != '/')) return "";
  const absl::string_view name = path.substr(cache + kCache.size());
  const size_t dot = name.find('.');
  if (!absl::EndsWith(name, ".pyc") || dot == name.npos || absl::StrContains(name, "/")) return "";
  return absl::StrCat(path.substr(0, cache), name.substr(0, dot), ".py");
}

std::string BlobId(absl::string_view content) {
  return Sha1(absl::StrCat("blob ", content.size(), absl::string_view("\0", 1), content));
}

}  // namespace bkm
