// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/source_tree.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"
#include "harness/source/subject_fault.h"
#include "harness/source/tree_listing.h"
#include "harness/source/tree_rules.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

constexpr absl::string_view kInit = "__init__";
constexpr absl::string_view kLink = "120000";
constexpr absl::string_view kSubmodule = "160000";

std::string Lines(const std::vector<std::string>& lines) {
  return absl::StrCat(absl::StrJoin(lines, "\n"), "\n");
}

// The module in a file, by its name relative to the package ("" is the package itself); nullopt for
// other files.
struct ModuleFile {
  std::string name;
  bool package = false;
  bool opaque = false;
};
std::optional<ModuleFile> ModuleOf(absl::string_view path) {
  const size_t slash = path.rfind('/');
  const size_t start = slash == path.npos ? 0 : slash + 1;
  const absl::string_view stem = path.substr(start, path.find('.', start) - start);
  const absl::string_view ending = path.substr(start + stem.size());
  const bool opaque = absl::EndsWith(ending, ".so") || absl::EndsWith(ending, ".pyd");
  if (ending != ".py" && !opaque) return std::nullopt;
  ModuleFile file{.package = stem == kInit, .opaque = opaque};
  const absl::string_view folder = path.substr(0, slash == path.npos ? 0 : slash);
  file.name = absl::StrReplaceAll(
      file.package ? folder : absl::string_view(path.data(), start + stem.size()), {{"/", "."}});
  return file;
}

}  // namespace

std::string SourceTree::PathOf(int module, const std::string& name) const {
  const std::string base = absl::StrReplaceAll(name, {{".", "/"}});
  const int file = File(module);
  if (file == kFolder || file == kAbsent) return absl::StrCat(base, "/");
  return absl::StrCat(base, IsPackage(module) ? "/__init__.py" : ".py");
}

SourceTree MakeTree(SymbolTables& tables, std::string id, std::string package, std::string root,
                    const std::vector<TreeFile>& files) {
  SourceTree tree{.id = std::move(id), .package = std::move(package), .root = std::move(root)};
  const auto set = [&](const std::string& name, int file, bool is_package) {
    const int module = tables.Module(name);
    if (module >= static_cast<int>(tree.files.size())) {
      tree.files.resize(module + 1, SourceTree::kAbsent);
      tree.is_package.resize(module + 1);
    }
    int& there = tree.files[module];
    if (there == SourceTree::kAbsent) tree.modules.push_back(module);
    // A package hides a module of the same name, and a module hides a folder without __init__.py.
    if (there == SourceTree::kAbsent || there == SourceTree::kFolder || is_package) {
      there = file;
      tree.is_package[module] = is_package;
    }
  };
  for (const TreeFile& file : files) {
    const std::optional<ModuleFile> found = ModuleOf(file.path);
    if (!found) continue;
    const std::string name =
        found->name.empty() ? tree.package : absl::StrCat(tree.package, ".", found->name);
    const bool opaque = found->opaque || file.is_link;
    set(name, opaque ? SourceTree::kOpaque : tables.Blob(file.blob), found->package);
    for (size_t dot = name.rfind('.'); dot != name.npos; dot = name.rfind('.', dot - 1)) {
      const std::string above = name.substr(0, dot);
      if (tree.File(tables.Module(above)) == SourceTree::kAbsent) {
        set(above, SourceTree::kFolder, true);
        tree.is_package[tables.Module(above)] = true;
      }
    }
  }
  std::sort(tree.modules.begin(), tree.modules.end());
  return tree;
}

absl::StatusOr<GitTrees::Tree> GitTrees::LoadOne(const std::string& commit,
                                                 std::vector<int>& blobs) {
  ASSIGN_OR_RETURN(const std::string top, objects_->TreeOf(commit));
  for (const char* root : {"", "src/"}) {
    ASSIGN_OR_RETURN(const std::optional<GitEntry> folder,
                     objects_->Find(top, absl::StrCat(root, package_)));
    if (!folder || folder->mode != "40000") continue;
    Tree& tree = trees_[absl::StrCat(root, folder->id)];
    if (tree) return tree;
    ASSIGN_OR_RETURN(const std::vector<GitEntry> entries, objects_->Walk(folder->id));
    std::vector<TreeFile> files;
    for (const GitEntry& entry : entries) {
      if (entry.mode == kSubmodule) continue;
      files.push_back({.path = entry.path, .blob = entry.id, .is_link = entry.mode == kLink});
    }
    tree = std::make_shared<const SourceTree>(
        MakeTree(tables_, absl::StrCat("git-tree:", folder->id), package_, root, files));
    blobs.insert(blobs.end(), tree->files.begin(), tree->files.end());
    return tree;
  }
  return Tree();
}

absl::StatusOr<std::string> GitTrees::ReadBlobs(const std::vector<std::string>& ids) const {
  // ID SP TYPE SP SIZE; a file that is too large to scan stays unknown, like a missing one.
  ASSIGN_OR_RETURN(const std::string sizes,
                   repository_.Output({"cat-file", "--batch-check"}, Lines(ids)));
  std::vector<std::string> small;
  for (const absl::string_view line : absl::StrSplit(sizes, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(line, ' ');
    uint64_t size = 0;
    if (parts.size() == 3 && absl::SimpleAtoi(parts[2], &size) && parts[1] == "blob" &&
        size <= kLargestCompiled)
      small.push_back(parts[0]);
  }
  return repository_.Output({"cat-file", "--batch"}, Lines(small));
}

absl::StatusOr<std::vector<GitTrees::Tree>> GitTrees::Load(
    const std::vector<std::string>& commits) {
  if (!objects_) {
    ASSIGN_OR_RETURN(objects_, GitObjects::Open(repository_));
  }
  std::vector<Tree> result;
  std::vector<int> blobs;
  for (const std::string& commit : commits) {
    absl::StatusOr<Tree> tree = LoadOne(commit, blobs);
    // A commit whose tree is not allowed has no package that could be checked.
    if (FaultOf(tree.status())) tree = Tree();
    RETURN_IF_ERROR(tree.status());
    result.push_back(*std::move(tree));
  }
  if (blobs.empty()) return result;
  RETURN_IF_ERROR(repository_.Prefetch(commits, {package_, absl::StrCat("src/", package_)}));
  RETURN_IF_ERROR(
      tables_.Scan(blobs, [this](const std::vector<std::string>& ids) { return ReadBlobs(ids); }));
  return result;
}

absl::StatusOr<std::shared_ptr<const SourceTree>> FolderTree(SymbolTables& tables,
                                                             const fs::path& folder,
                                                             const std::string& package) {
  std::vector<TreeFile> files;
  std::map<std::string, fs::path> path_of;
  std::string identity;
  const fs::path base = folder / package;
  std::vector<FoundFile> found;
  std::error_code error;
  if (fs::is_directory(base, error)) RETURN_IF_ERROR(FindFiles(base, kPathBounds, found));
  for (const FoundFile& file : found) {
    const uintmax_t size = file.is_link ? 0 : fs::file_size(base / file.path, error);
    if (!ModuleOf(file.path) || error || size > kLargestCompiled) continue;
    // What a link names may lie outside of the tree.
    std::string content;
    if (!file.is_link) {
      ASSIGN_OR_RETURN(content, ReadFile(base / file.path));
    }
    files.push_back({.path = file.path, .blob = BlobId(content), .is_link = file.is_link});
    path_of[files.back().blob] = base / file.path;
    absl::StrAppend(&identity, file.path, " ", file.is_link ? "link" : files.back().blob, "\n");
  }
  if (files.empty()) {
    return absl::NotFoundError(absl::StrCat(base.string(), " has no Python files"));
  }
  auto tree = std::make_shared<const SourceTree>(
      MakeTree(tables, absl::StrCat("files:", Sha256(identity)), package, "", files));
  RETURN_IF_ERROR(tables.Scan(
      tree->files, [&](const std::vector<std::string>& wanted) -> absl::StatusOr<std::string> {
        std::string batch;
        for (const std::string& id : wanted) {
          const auto path = path_of.find(id);
          if (path == path_of.end()) continue;
          ASSIGN_OR_RETURN(const std::string content, ReadFile(path->second));
          absl::StrAppend(&batch, id, " blob ", content.size(), "\n", content, "\n");
        }
        return batch;
      }));
  return std::shared_ptr<const SourceTree>(tree);
}

}  // namespace bkm
