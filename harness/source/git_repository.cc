// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/git_repository.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

std::vector<absl::string_view> Lines(absl::string_view text, char separator = '\n') {
  return absl::StrSplit(text, separator, absl::SkipEmpty());
}

}  // namespace

Command GitCommand(std::vector<std::string> arguments) {
  Command command;
  // A mirror may belong to another user. That is safe: reading a repository runs none of its hooks.
  command.argv = {"git", "-c", "safe.directory=*", "-c", "gc.auto=0"};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.set_env = {{"GIT_TERMINAL_PROMPT", "0"}, {"LC_ALL", "C"}, {"TZ", "UTC"}};
  command.unset_env = {"GIT_DIR",
                       "GIT_WORK_TREE",
                       "GIT_INDEX_FILE",
                       "GIT_OBJECT_DIRECTORY",
                       "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                       "GIT_COMMON_DIR",
                       "GIT_NAMESPACE",
                       "GIT_PREFIX"};
  return command;
}

std::string GitComplaint(const ProcessResult& result) {
  const std::vector<absl::string_view> lines = Lines(result.err);
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    absl::string_view text = *line;
    if (absl::ConsumePrefix(&text, "fatal: ") || absl::ConsumePrefix(&text, "error: ")) {
      return std::string(text);
    }
  }
  return lines.empty() ? absl::StrCat("git ended with ", result.exit_code)
                       : std::string(lines.back());
}

absl::StatusOr<ProcessResult> GitRepository::Run(const std::vector<std::string>& arguments,
                                                 std::string input) const {
  std::vector<std::string> all = {"--git-dir", folder_.string()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  Command command = GitCommand(std::move(all));
  command.input = std::move(input);
  command.may_run_again = true;
  absl::StatusOr<ProcessResult> result = RunCommand(command);
  if (absl::IsNotFound(result.status())) {
    return absl::FailedPreconditionError("git is not installed: apt-get install git");
  }
  return result;
}

absl::StatusOr<std::string> GitRepository::Output(const std::vector<std::string>& arguments,
                                                  std::string input) const {
  ASSIGN_OR_RETURN(ProcessResult result, Run(arguments, std::move(input)));
  if (result.ok()) return std::move(result.out);
  return absl::UnavailableError(absl::StrCat("git ", arguments[0], " in ", folder_.string(),
                                             " failed: ", GitComplaint(result)));
}

absl::StatusOr<std::optional<std::string>> GitRepository::CommitId(
    absl::string_view revision) const {
  ASSIGN_OR_RETURN(const ProcessResult result, Run({"rev-parse", "--verify", "--end-of-options",
                                                    absl::StrCat(revision, "^{commit}")}));
  if (!result.ok()) {
    if (!absl::StrContains(result.err, "is ambiguous")) return std::optional<std::string>();
    return absl::InvalidArgumentError(
        absl::StrCat("the short id ", revision, " fits several commits: give more of its digits"));
  }
  std::string id(absl::StripSuffix(result.out, "\n"));
  // rev-parse echoes any 40 hex digits, even of an unknown object.
  ASSIGN_OR_RETURN(const ProcessResult exists, Run({"cat-file", "-e", id}));
  return exists.ok() ? std::optional<std::string>(std::move(id)) : std::nullopt;
}

absl::StatusOr<Commit> GitRepository::Describe(absl::string_view commit) const {
  // Not git show: it detects renames, for which it would read or fetch file contents.
  ASSIGN_OR_RETURN(const std::string text,
                   Output({"log", "--no-walk", "--no-show-signature", "--format=%cd%n%s",
                           "--date=format-local:%Y-%m-%d", std::string(commit)}));
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  return Commit{std::string(commit), lines[0], lines.size() > 1 ? lines[1] : ""};
}

absl::StatusOr<std::optional<std::string>> GitRepository::ObjectId(absl::string_view commit,
                                                                   absl::string_view path) const {
  ASSIGN_OR_RETURN(const ProcessResult result, Run({"rev-parse", "--verify", "--end-of-options",
                                                    absl::StrCat(commit, ":", path)}));
  if (!result.ok()) return std::optional<std::string>();
  return std::optional<std::string>(absl::StripSuffix(result.out, "\n"));
}

absl::Status GitRepository::Prefetch(const std::vector<std::string>& commits,
                                     const std::vector<std::string>& paths) const {
  ASSIGN_OR_RETURN(const ProcessResult promisor, Run({"config", "remote.origin.promisor"}));
  if (!promisor.ok()) return absl::OkStatus();
  // Paths are names, never patterns. git gives up at a malformed tree; then the files are fetched
  // one by one, as they are read.
  ASSIGN_OR_RETURN(
      const ProcessResult objects,
      Run({"--literal-pathspecs", "rev-list", "--no-walk", "--objects", "--missing=print",
           "--no-object-names", "--stdin"},
          absl::StrCat(absl::StrJoin(commits, "\n"), "\n--\n", absl::StrJoin(paths, "\n"), "\n")));
  if (!objects.ok()) return absl::OkStatus();
  std::string missing;
  for (absl::string_view line : Lines(objects.out)) {
    if (absl::ConsumePrefix(&line, "?")) absl::StrAppend(&missing, line, "\n");
  }
  if (missing.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      const ProcessResult fetched,
      Run({"-c", "fetch.negotiationAlgorithm=noop", "fetch", "origin", "--no-tags",
           "--no-write-fetch-head", "--recurse-submodules=no", "--filter=blob:none", "--stdin"},
          missing));
  if (fetched.ok()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot fetch files of ", folder_.string(), ": ",
                                             GitComplaint(fetched), " (check the network)"));
}

absl::StatusOr<std::vector<std::string>> GitRepository::Tags() const {
  ASSIGN_OR_RETURN(const std::string text, Output({"for-each-ref", "--sort=-creatordate",
                                                   "--format=%(refname:short)", "refs/tags"}));
  const std::vector<absl::string_view> lines = Lines(text);
  return std::vector<std::string>(lines.begin(), lines.end());
}

}  // namespace bkm
