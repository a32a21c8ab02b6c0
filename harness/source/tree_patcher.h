// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SOURCE_TREE_PATCHER_H_
#define HARNESS_SOURCE_TREE_PATCHER_H_

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/source/git_objects.h"
#include "harness/source/git_repository.h"

namespace bkm {

// Makes variants of a package at a commit: without the changes of other commits, or with other
// files. Trees are named by their git ids. The repository is not modified: new objects go to the
// folder `scratch`, which may be kept and reused.
class TreePatcher {
 public:
  // `package` is the path of the package's folder in the repository: "torchtitan",
  // "src/torchtitan".
  TreePatcher(GitRepository repository, std::string package, std::filesystem::path scratch)
      : repository_(std::move(repository)),
        package_(std::move(package)),
        scratch_(std::move(scratch)) {}

  // The tree of the package's folder at `commit`; nullopt when there is no such folder.
  absl::StatusOr<std::optional<std::string>> TreeAt(absl::string_view commit) const;

  struct Reverted {
    std::string tree;
    // Files in which the reverted change conflicts with later ones. In `tree` they are as they were
    // before the reverted change.
    std::vector<std::string> conflicts;
  };
  // Reverts in `tree` the changes of `commit` against its first parent: a three-way merge that
  // follows renames, like git revert. NotFound when either commit lacks the package.
  absl::StatusOr<Reverted> Revert(const std::string& tree, const std::string& commit) const;

  // The file at `path` below the package; nullopt when there is no such file.
  absl::StatusOr<std::optional<std::string>> Read(const std::string& tree,
                                                  const std::string& path) const;
  // `tree` with the file `path` replaced by `text`, or removed when `text` is nullopt.
  absl::StatusOr<std::string> Write(const std::string& tree, const std::string& path,
                                    const std::optional<std::string>& text) const;

  // Writes all files of `tree` to `folder`, which must not exist, byte for byte. Leaves out links
  // that lead out of the tree.
  absl::Status Checkout(const std::string& tree, const std::filesystem::path& folder) const;

 private:
  absl::StatusOr<ProcessResult> Run(const std::vector<std::string>& arguments,
                                    std::string input = "") const;
  // Like Run, for a command that fails only when the repository is damaged or the disk is full.
  // Returns its stdout without the last line end.
  absl::StatusOr<std::string> Output(const std::vector<std::string>& arguments,
                                     std::string input = "") const;
  // Creates a commit of `tree`, only to merge it.
  absl::StatusOr<std::string> CommitOf(const std::string& tree, const std::string& parent) const;
  // NotFound, with the reason, when the tree breaks the rules.
  absl::Status CheckTree(const std::string& tree) const;
  std::map<std::string, std::string> Environment() const;  // where git finds and puts objects
  absl::StatusOr<std::unique_ptr<GitObjects>> OpenObjects() const;
  std::filesystem::path index() const { return scratch_ / "index"; }

  GitRepository repository_;
  std::string package_;
  std::filesystem::path scratch_;
};

}  // namespace bkm

#endif  // HARNESS_SOURCE_TREE_PATCHER_H_
