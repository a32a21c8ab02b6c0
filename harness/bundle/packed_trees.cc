// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/bundle/packed_trees.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/folder_reader.h"
#include "harness/base/status_macros.h"
#include "harness/source/package_metadata.h"
#include "harness/source/tree_rules.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

bool IsLink(const PackedFile& file) {
  return !file.id.empty() && file.id.back() == TreeListing::kLink;
}
bool IsExecutable(const PackedFile& file) {
  return !file.id.empty() && file.id.back() == TreeListing::kExecutable;
}

absl::Status Failed(const fs::path& path) {
  return absl::UnavailableError(
      absl::StrCat("cannot write ", path.string(), ": ", std::strerror(errno)));
}

absl::Status WriteFileOrFolder(const PackedFile& file, const PartFile& parts, const fs::path& tree,
                               TreeMeter& meter) {
  const fs::path path = tree / file.path;
  if (file.part.empty()) return CreateDirectories(path);
  ASSIGN_OR_RETURN(const std::string content, parts.Read(file.part));
  RETURN_IF_ERROR(meter.CountFile(file.path, content.size()));
  RETURN_IF_ERROR(WriteScratchFile(path, content));
  if (::chmod(path.c_str(), IsExecutable(file) ? 0555 : 0444) != 0) return Failed(path);
  return absl::OkStatus();
}

absl::Status WriteLink(const PackedFile& file, const PartFile& parts, const fs::path& tree) {
  ASSIGN_OR_RETURN(std::string target, parts.Read(file.part));
  RETURN_IF_ERROR(CheckLink(file.path, target));
  if (LeavesTree(file.path, target)) target = kDeadTarget;
  const fs::path path = tree / file.path;
  RETURN_IF_ERROR(CreateDirectories(path.parent_path()));
  return ::symlink(target.c_str(), path.c_str()) == 0 ? absl::OkStatus() : Failed(path);
}

}  // namespace

absl::StatusOr<std::string> PackTree(const fs::path& folder, const TreeListing* listing,
                                     PartFile& parts) {
  std::optional<TreeListing> found;
  if (!listing) {
    ASSIGN_OR_RETURN(found, TreeListing::OfFolder(folder));
    listing = &*found;
  }
  const FolderReader reader(folder);
  PackedTree tree;
  TreeMeter meter{TreeBounds()};
  for (const auto& [path, id] : listing->files()) {
    PackedFile file{.path = path, .id = id};
    if (!absl::EndsWith(path, "/")) {
      std::string content;
      if (IsLink(file)) {
        std::error_code error;
        content = fs::read_symlink(folder / path, error).string();
        if (error)
          return absl::DataLossError(absl::StrCat((folder / path).string(), " is not a link"));
      } else {
        ASSIGN_OR_RETURN(content, reader.Read(path, PartFile::kLargestPart));
      }
      RETURN_IF_ERROR(meter.CountFile(path, content.size()));
      ASSIGN_OR_RETURN(file.part, parts.Add(content));
    }
    tree.files.push_back(std::move(file));
  }
  const std::string text = DocumentText(tree);
  // What no machine would take is told where it is packed.
  RETURN_IF_ERROR(ReadPackedTree(text, folder.string()).status());
  return parts.Add(text);
}

TreeListing ListingOf(const PackedTree& tree) {
  std::vector<TreeListing::File> files;
  for (const PackedFile& file : tree.files) files.emplace_back(file.path, file.id);
  return TreeListing(std::move(files));
}

absl::Status WriteTree(const PackedTree& packed, const PartFile& parts, const fs::path& tree) {
  RETURN_IF_ERROR(CreateDirectories(tree));
  TreeMeter meter{TreeBounds()};
  // Links come last: nothing is written through one.
  for (const PackedFile& file : packed.files) {
    if (!IsLink(file)) RETURN_IF_ERROR(WriteFileOrFolder(file, parts, tree, meter));
  }
  for (const PackedFile& file : packed.files) {
    if (IsLink(file)) RETURN_IF_ERROR(WriteLink(file, parts, tree));
  }
  return absl::OkStatus();
}

std::string PlacedTreeKey(const std::string& part, const std::string& package,
                          const std::string& python_version) {
  return absl::StrCat("bundle-", part, "-", package.empty() ? "plain" : python_version);
}

absl::StatusOr<fs::path> PlaceTree(const FolderCache& trees, const std::string& part,
                                   const PackedTree& packed, const PartFile& parts,
                                   const std::string& package, const fs::path& python,
                                   const std::string& python_version) {
  const auto make = [&](const fs::path& folder) -> absl::Status {
    RETURN_IF_ERROR(WriteTree(packed, parts, folder / "tree"));
    std::error_code error;
    const fs::path code = folder / "tree" / package;
    // Without compiled files, cells only take longer. Those of the tree itself stay as they are.
    const bool has_own = std::any_of(
        packed.files.begin(), packed.files.end(),
        [](const PackedFile& file) { return absl::StrContains(file.path, "__pycache__/"); });
    if (!package.empty() && !has_own && fs::is_directory(fs::symlink_status(code, error)))
      PackageReader(python).CompileBytecode(code).IgnoreError();
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(const fs::path folder,
                   trees.GetOrMake(PlacedTreeKey(part, package, python_version), make));
  return folder / "tree";
}

}  // namespace bkm
