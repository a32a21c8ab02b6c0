// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/tree_patcher.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/source/git_objects.h"
#include "harness/source/subject_fault.h"
#include "harness/source/tree_rules.h"

namespace bkm {

namespace fs = std::filesystem;

namespace {

absl::Status WriteEntry(const GitEntry& entry, const std::string& content, const fs::path& folder) {
  const fs::path path = folder / entry.path;
  std::error_code error;
  if (entry.mode == "120000") {
    RETURN_IF_ERROR(CheckLink(entry.path, content));
    if (LeavesTree(entry.path, content)) return absl::OkStatus();
    RETURN_IF_ERROR(CreateDirectories(path.parent_path()));
    fs::create_symlink(content, path, error);
  } else {
    RETURN_IF_ERROR(WriteFile(path, content));
    if (entry.mode == "100755") fs::permissions(path, fs::perms(0755), error);
  }
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot write ", path.string(), ": ", error.message()));
}

}  // namespace

std::map<std::string, std::string> TreePatcher::Environment() const {
  return {{"GIT_OBJECT_DIRECTORY", (scratch_ / "objects").string()},
          {"GIT_ALTERNATE_OBJECT_DIRECTORIES", (repository_.folder() / "objects").string()}};
}

absl::StatusOr<std::unique_ptr<GitObjects>> TreePatcher::OpenObjects() const {
  // git refuses to start without this folder.
  RETURN_IF_ERROR(CreateDirectories(scratch_ / "objects"));
  return GitObjects::Open(repository_, Environment());
}

absl::Status TreePatcher::CheckTree(const std::string& tree) const {
  ASSIGN_OR_RETURN(const std::unique_ptr<GitObjects> objects, OpenObjects());
  const absl::Status status = objects->Walk(tree).status();
  if (FaultOf(status)) return absl::NotFoundError(status.message());
  return status;
}

absl::StatusOr<ProcessResult> TreePatcher::Run(const std::vector<std::string>& arguments,
                                               std::string input) const {
  RETURN_IF_ERROR(CreateDirectories(scratch_ / "objects"));
  std::vector<std::string> all = {"--git-dir", repository_.folder().string()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  Command command = GitCommand(std::move(all));
  const std::string nobody = "bkm";
  for (const auto& [name, value] : Environment()) command.set_env[name] = value;
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
  // git merges trees of any size and shape.
  RETURN_IF_ERROR(CheckTree(*changed));
  RETURN_IF_ERROR(CheckTree(*before));
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
  // Not git checkout-index: the tree's .gitattributes would choose programs that convert files.
  RETURN_IF_ERROR(CreateDirectories(folder));
  ASSIGN_OR_RETURN(const std::unique_ptr<GitObjects> objects, OpenObjects());
  ASSIGN_OR_RETURN(const std::vector<GitEntry> entries, objects->Walk(tree));
  TreeMeter meter{TreeBounds()};
  for (const GitEntry& entry : entries) {
    if (entry.mode == "160000") continue;
    ASSIGN_OR_RETURN(const std::optional<GitObjects::Object> file, objects->Read(entry.id));
    if (!file || file->type != "blob") {
      return absl::NotFoundError(absl::StrCat(repository_.folder().string(), " lacks the file ",
                                              entry.path, ": fetch it, or use a complete clone"));
    }
    RETURN_IF_ERROR(meter.CountFile(entry.path, file->content.size()));
    RETURN_IF_ERROR(WriteEntry(entry, file->content, folder));
  }
  return absl::OkStatus();
}

}  // namespace bkm
