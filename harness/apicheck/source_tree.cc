// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/source_tree.h"

#include <algorithm>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

constexpr size_t kIdBytes = 20;
constexpr absl::string_view kInit = "__init__";

// One answer of `git cat-file --batch`; absent: it is missing.
struct Object {
  bool present = false;
  std::string id;
  absl::string_view content;
};

// Takes the next answer off `rest`.
Object NextObject(absl::string_view& rest) {
  const size_t end = rest.find('\n');
  const std::vector<absl::string_view> header = absl::StrSplit(rest.substr(0, end), ' ');
  rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  size_t size = 0;
  if (header.size() != 3 || !absl::SimpleAtoi(header[2], &size) || size >= rest.size()) return {};
  Object object{true, std::string(header[0]), rest.substr(0, size)};
  rest.remove_prefix(size + 1);
  return object;
}

std::string Lines(const std::vector<std::string>& lines) {
  return absl::StrCat(absl::StrJoin(lines, "\n"), "\n");
}

// The module that a file holds, relative to the package ("" is the package itself); nullopt for
// files that are none.
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
    // A package hides a module of its name, and a module hides a mere folder.
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
    set(name, found->opaque ? SourceTree::kOpaque : tables.Blob(file.blob), found->package);
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

absl::StatusOr<std::vector<std::string>> GitTrees::ReadFolders(
    const std::vector<std::string>& names) {
  std::vector<std::string> ids;
  std::vector<std::string> wanted = names;
  bool first = true;
  while (!wanted.empty()) {
    ASSIGN_OR_RETURN(const std::string text,
                     repository_.Output({"cat-file", "--batch"}, Lines(wanted)));
    absl::string_view rest = text;
    std::set<std::string> next;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const Object object = NextObject(rest);
      if (first) ids.push_back(object.id);
      if (!object.present || folders_.contains(object.id)) continue;
      std::vector<Entry>& entries = folders_[object.id];
      // Each entry: MODE SP NAME NUL, and the id's bytes.
      for (absl::string_view left = object.content; !left.empty();) {
        const size_t space = left.find(' ');
        const size_t end = left.find('\0', space);
        if (end == left.npos || left.size() < end + 1 + kIdBytes) break;
        Entry entry{.folder = left[0] == '4',
                    .name = std::string(left.substr(space + 1, end - space - 1)),
                    .id = absl::BytesToHexString(left.substr(end + 1, kIdBytes))};
        if (entry.folder) next.insert(entry.id);
        entries.push_back(std::move(entry));
        left.remove_prefix(end + 1 + kIdBytes);
      }
    }
    first = false;
    wanted.clear();
    for (const std::string& id : next) {
      if (!folders_.contains(id)) wanted.push_back(id);
    }
  }
  return ids;
}

void GitTrees::List(const std::string& folder, const std::string& prefix,
                    std::vector<TreeFile>& files) {
  for (const Entry& entry : folders_[folder]) {
    if (entry.folder) {
      List(entry.id, absl::StrCat(prefix, entry.name, "/"), files);
    } else {
      files.push_back({absl::StrCat(prefix, entry.name), entry.id});
    }
  }
}

// In a clone that left file contents behind, brings those of the package in one go.
absl::Status GitTrees::FetchMissing(const std::vector<std::string>& commits) {
  ASSIGN_OR_RETURN(const ProcessResult promisor,
                   repository_.Run({"config", "remote.origin.promisor"}));
  if (!promisor.ok()) return absl::OkStatus();
  std::string input = Lines(commits);
  absl::StrAppend(&input, "--\n", package_, "\nsrc/", package_, "\n");
  ASSIGN_OR_RETURN(const std::string objects,
                   repository_.Output({"rev-list", "--no-walk", "--objects", "--missing=print",
                                       "--no-object-names", "--stdin"},
                                      input));
  std::string missing;
  for (absl::string_view line : absl::StrSplit(objects, '\n', absl::SkipEmpty())) {
    if (line[0] == '?') absl::StrAppend(&missing, line.substr(1), "\n");
  }
  if (missing.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const ProcessResult fetched,
                   repository_.Run({"-c", "fetch.negotiationAlgorithm=noop", "fetch", "origin",
                                    "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no",
                                    "--filter=blob:none", "--stdin"},
                                   missing));
  if (fetched.ok()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot fetch files of ",
                                             repository_.folder().string(), ": ",
                                             GitComplaint(fetched), " (check the network)"));
}

absl::StatusOr<std::vector<std::shared_ptr<const SourceTree>>> GitTrees::Load(
    const std::vector<std::string>& commits) {
  std::vector<std::shared_ptr<const SourceTree>> result(commits.size());
  std::vector<int> blobs;
  for (const std::string root : {"", "src/"}) {
    std::vector<std::string> names;
    std::vector<size_t> places;
    for (size_t i = 0; i < commits.size(); ++i) {
      if (result[i]) continue;
      names.push_back(absl::StrCat(commits[i], ":", root, package_));
      places.push_back(i);
    }
    if (names.empty()) break;
    ASSIGN_OR_RETURN(const std::vector<std::string> ids, ReadFolders(names));
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i].empty()) continue;
      std::shared_ptr<const SourceTree>& tree = trees_[absl::StrCat(root, ids[i])];
      if (!tree) {
        std::vector<TreeFile> files;
        List(ids[i], "", files);
        tree = std::make_shared<const SourceTree>(
            MakeTree(tables_, absl::StrCat("git-tree:", ids[i]), package_, root, files));
        blobs.insert(blobs.end(), tree->files.begin(), tree->files.end());
      }
      result[places[i]] = tree;
    }
  }
  if (blobs.empty()) return result;
  RETURN_IF_ERROR(FetchMissing(commits));
  RETURN_IF_ERROR(tables_.Scan(blobs, [this](const std::vector<std::string>& ids) {
    return repository_.Output({"cat-file", "--batch"}, Lines(ids));
  }));
  return result;
}

absl::StatusOr<std::shared_ptr<const SourceTree>> FolderTree(SymbolTables& tables,
                                                             const fs::path& folder,
                                                             const std::string& package) {
  std::vector<TreeFile> files;
  std::vector<std::string> paths;
  std::error_code error;
  const fs::path base = folder / package;
  for (fs::recursive_directory_iterator it(base, error), end; it != end; it.increment(error)) {
    if (error) break;
    const std::string path = it->path().lexically_relative(base).string();
    if (!it->is_regular_file(error) || !ModuleOf(path)) continue;
    files.push_back({path, ""});
    paths.push_back(it->path().string());
  }
  if (error || files.empty()) {
    return absl::NotFoundError(absl::StrCat(base.string(), ": no Python files there"));
  }
  Command hash = GitCommand({"hash-object", "--no-filters", "--stdin-paths"});
  hash.input = Lines(paths);
  ASSIGN_OR_RETURN(const std::string ids, RunForOutput(hash));
  const std::vector<std::string> blobs = absl::StrSplit(ids, '\n', absl::SkipEmpty());
  if (blobs.size() != files.size()) return absl::UnavailableError("git hash-object was cut short");
  std::map<std::string, std::string> path_of;
  std::string identity;
  for (size_t i = 0; i < files.size(); ++i) {
    files[i].blob = blobs[i];
    path_of[blobs[i]] = paths[i];
    absl::StrAppend(&identity, files[i].path, " ", blobs[i], "\n");
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
