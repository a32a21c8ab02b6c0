// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SOURCE_TREE_PATCHER_H_
#define HARNESS_SOURCE_TREE_PATCHER_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/source/git_repository.h"

namespace bkm {

// Makes variants of a package as it was at some commit: without the changes of other commits, or
// with other files. Trees are named by their git ids. Nothing is written to the repository: new
// objects go to a folder of our own, which may be kept and used again.
class TreePatcher {
 public:
  // `package`: where the package's folder lies in the repository, "torchtitan" or "src/torchtitan".
  TreePatcher(GitRepository repository, std::string package, std::filesystem::path scratch)
      : repository_(std::move(repository)),
        package_(std::move(package)),
        scratch_(std::move(scratch)) {}

  // The package's folder at `commit`; nullopt where there is none.
  absl::StatusOr<std::optional<std::string>> TreeAt(absl::string_view commit) const;

  struct Reverted {
    std::string tree;
    // Files where the change to be taken out and later ones meet: in `tree` they are as they were
    // before the change.
    std::vector<std::string> conflicts;
  };
  // `tree` without what `commit` changed against its first parent: a three-way merge with renames
  // followed, as git revert makes it. NotFound where either lacks the package.
  absl::StatusOr<Reverted> Revert(const std::string& tree, const std::string& commit) const;

  // The file at `path` below the package; nullopt where there is none.
  absl::StatusOr<std::optional<std::string>> Read(const std::string& tree,
                                                  const std::string& path) const;
  // `tree` with `text` at `path`; without a text, with no file there.
  absl::StatusOr<std::string> Write(const std::string& tree, const std::string& path,
                                    const std::optional<std::string>& text) const;

  // All files of `tree` below `folder`, which must not exist.
  absl::Status Checkout(const std::string& tree, const std::filesystem::path& folder) const;

 private:
  absl::StatusOr<ProcessResult> Run(const std::vector<std::string>& arguments,
                                    std::string input = "") const;
  // As Run, for what can only fail when the repository is damaged or the disk full. Without the
  // line end.
  absl::StatusOr<std::string> Output(const std::vector<std::string>& arguments,
                                     std::string input = "") const;
  // A commit of `tree`, for merging alone.
  absl::StatusOr<std::string> CommitOf(const std::string& tree, const std::string& parent) const;
  std::filesystem::path index() const { return scratch_ / "index"; }

  GitRepository repository_;
  std::string package_;
  std::filesystem::path scratch_;
};

}  // namespace bkm

#endif  // HARNESS_SOURCE_TREE_PATCHER_H_
