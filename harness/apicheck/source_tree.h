// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_SOURCE_TREE_H_
#define HARNESS_APICHECK_SOURCE_TREE_H_

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/apicheck/symbol_tables.h"
#include "harness/source/git_objects.h"
#include "harness/source/git_repository.h"

namespace bkm {

// The modules of one package at one version.
struct SourceTree {
  // What lies at a module's name instead of a Python file.
  static constexpr int kAbsent = -1;
  static constexpr int kFolder = -2;  // a package without __init__.py
  static constexpr int kOpaque = -3;  // an extension module

  std::string id;                // equal ids mean equal content
  std::string package;           // import name
  std::string root;              // the package's folder in its repository: "" or "src/"
  std::vector<int> files;        // by module number: a blob number or one of the above
  std::vector<bool> is_package;  // by module number
  std::vector<int> modules;      // numbers of all modules that are not absent

  int File(int module) const {
    return module < static_cast<int>(files.size()) ? files[module] : kAbsent;
  }
  bool IsPackage(int module) const {
    return module < static_cast<int>(is_package.size()) && is_package[module];
  }
  // "torchtitan/components/loss.py" for "torchtitan.components.loss".
  std::string PathOf(int module, const std::string& name) const;
};

// One file of a package, for MakeTree.
struct TreeFile {
  std::string path;      // below the folder of the package
  std::string blob;      // git's id of the content
  bool is_link = false;  // what it names is not read
};

SourceTree MakeTree(SymbolTables& tables, std::string id, std::string package, std::string root,
                    const std::vector<TreeFile>& files);

// Trees of a repository's commits, read from its object store without a checkout. Commits with an
// equal package folder share one tree.
class GitTrees {
 public:
  GitTrees(GitRepository repository, std::string package, SymbolTables& tables)
      : repository_(std::move(repository)), package_(std::move(package)), tables_(tables) {}

  // One tree per commit, in the order of `commits`; null if a commit lacks the package or has a
  // tree that is not allowed. Scans files that were never scanned.
  absl::StatusOr<std::vector<std::shared_ptr<const SourceTree>>> Load(
      const std::vector<std::string>& commits);

 private:
  using Tree = std::shared_ptr<const SourceTree>;
  // Appends the files of a tree that is read for the first time to `blobs`.
  // The output of `git cat-file --batch`, without files that are too large to scan.
  absl::StatusOr<std::string> ReadBlobs(const std::vector<std::string>& ids) const;
  absl::StatusOr<Tree> LoadOne(const std::string& commit, std::vector<int>& blobs);

  GitRepository repository_;
  std::string package_;
  SymbolTables& tables_;
  std::unique_ptr<GitObjects> objects_;  // null until the first Load
  std::map<std::string, Tree> trees_;    // by root and id
};

// The tree of the package in `folder`/`package` on disk.
absl::StatusOr<std::shared_ptr<const SourceTree>> FolderTree(SymbolTables& tables,
                                                             const std::filesystem::path& folder,
                                                             const std::string& package);

}  // namespace bkm

#endif  // HARNESS_APICHECK_SOURCE_TREE_H_
