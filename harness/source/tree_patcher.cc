// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/tree_patcher.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"

namespace bkm {

namespace fs = std::filesystem;

absl::StatusOr<ProcessResult> TreePatcher::Run(const std::vector<std::string>& arguments,
                                               std::string input) const {
  RETURN_IF_ERROR(CreateDirectories(scratch_ / "objects"));
  std::vector<std::string> all = {"--git-dir", repository_.folder().string()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  Command command = GitCommand(std::move(all));
  const std::string nobody = "bkm";
  command.set_env["GIT_OBJECT_DIRECTORY"] = (scratch_ / "objects").string();
  command.set_env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = (repository_.folder() / "objects").string();
  command.set_env["GIT_INDEX_FILE"] = index().string();
  for (const char* name :
       {"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"})
    command.set_env[name] = nobody;
  for (const char* date : {"GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"})
    command.set_env[date] = "2000-01-01T00:00:00Z";
  std::erase_if(command.unset_env,
                [&](const std::string& name) { return command.set_env.contains(name); });
  command.input = std::move(input);
  return RunCommand(command);
}

absl::StatusOr<std::string> TreePatcher::Output(const std::vector<std::string>& arguments,
                                                std::string input) const {
  ASSIGN_OR_RETURN(const ProcessResult result, Run(arguments, std::move(input)));
  if (result.ok()) return std::string(absl::StripSuffix(result.out, "\n"));
  return absl::UnavailableError(absl::StrCat("git ", arguments[0], " in ", scratch_.string(),
                                             " failed: ", GitComplaint(result)));
}

absl::StatusOr<std::optional<std::string>> TreePatcher::TreeAt(absl::string_view commit) const {
  return repository_.ObjectId(commit, package_);
}

absl::StatusOr<std::string> TreePatcher::CommitOf(const std::string& tree,
                                                  const std::string& parent) const {
  std::vector<std::string> arguments = {"commit-tree", tree, "-m", "for a merge"};
  if (!parent.empty()) arguments.insert(arguments.end(), {"-p", parent});
  return Output(arguments);
}

absl::StatusOr<TreePatcher::Reverted> TreePatcher::Revert(const std::string& tree,
                                                          const std::string& commit) const {
  ASSIGN_OR_RETURN(const auto changed, TreeAt(commit));
  ASSIGN_OR_RETURN(const auto before, TreeAt(absl::StrCat(commit, "^1")));
  if (!changed || !before) {
    return absl::NotFoundError(
        absl::StrCat("the package does not exist at ", commit, " or at its parent"));
  }
  // Merge the reverse of the change, from the state after it to the state before it, into `tree`.
  ASSIGN_OR_RETURN(const std::string base, CommitOf(*changed, ""));
  ASSIGN_OR_RETURN(const std::string ours, CommitOf(tree, base));
  ASSIGN_OR_RETURN(const std::string theirs, CommitOf(*before, base));
  ASSIGN_OR_RETURN(const ProcessResult merged, Run({"merge-tree", "--write-tree", "-z",
                                                    "--name-only", "--no-messages", ours, theirs}));
  if (merged.exit_code > 1 || merged.timed_out)
    return absl::UnavailableError(absl::StrCat("git merge-tree failed: ", GitComplaint(merged)));
  const std::vector<std::string> parts = absl::StrSplit(merged.out, '\0', absl::SkipEmpty());
  if (parts.empty()) return absl::UnavailableError("git merge-tree printed nothing");
  Reverted result{.tree = parts[0], .conflicts = {parts.begin() + 1, parts.end()}};
  for (const std::string& path : result.conflicts) {
    ASSIGN_OR_RETURN(const auto older, Read(*before, path));
    ASSIGN_OR_RETURN(result.tree, Write(result.tree, path, older));
  }
  return result;
}

absl::StatusOr<std::optional<std::string>> TreePatcher::Read(const std::string& tree,
                                                             const std::string& path) const {
  ASSIGN_OR_RETURN(ProcessResult result, Run({"cat-file", "blob", absl::StrCat(tree, ":", path)}));
  if (!result.ok()) return std::optional<std::string>();
  return std::optional<std::string>(std::move(result.out));
}

absl::StatusOr<std::string> TreePatcher::Write(const std::string& tree, const std::string& path,
                                               const std::optional<std::string>& text) const {
  RETURN_IF_ERROR(Output({"read-tree", tree}).status());
  // Edit through the index, which works in a bare repository too. Mode 0 removes a file.
  std::string entry = absl::StrCat("0 ", std::string(40, '0'), "\t", path, std::string(1, '\0'));
  if (text) {
    ASSIGN_OR_RETURN(const std::string blob, Output({"hash-object", "-w", "--stdin"}, *text));
    entry = absl::StrCat("100644 ", blob, "\t", path, std::string(1, '\0'));
  }
  RETURN_IF_ERROR(Output({"update-index", "-z", "--index-info"}, entry).status());
  return Output({"write-tree"});
}

absl::Status TreePatcher::Checkout(const std::string& tree, const fs::path& folder) const {
  RETURN_IF_ERROR(CreateDirectories(folder));
  RETURN_IF_ERROR(Output({"read-tree", tree}).status());
  return Output({"--work-tree", folder.string(), "checkout-index", "--all", "--force",
                 absl::StrCat("--prefix=", folder.string(), "/")})
      .status();
}

}  // namespace bkm
