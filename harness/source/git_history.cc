// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/git_history.h"

#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "harness/base/status_macros.h"
#include "harness/source/package_metadata.h"
#include "harness/source/tree_rules.h"

namespace bkm {
namespace {

// Mark ('-' for a commit outside the range), id, parents, time, date, title. Fields are separated
// by the unit separator, which no title contains, and commits by NUL.
constexpr char kFormat[] = "--format=%m%x1f%H%x1f%P%x1f%ct%x1f%cd%x1f%s";

absl::StatusOr<GitHistory::Commits> Log(const GitRepository& repository,
                                        std::vector<std::string> range) {
  std::vector<std::string> arguments = {
      "log",  "--topo-order",        "--reverse",    "--boundary",
      "-z",   "--no-show-signature", "--no-mailmap", "--date=format-local:%Y-%m-%d",
      kFormat};
  arguments.insert(arguments.end(), range.begin(), range.end());
  arguments.push_back("--");
  ASSIGN_OR_RETURN(const std::string text, repository.Output(arguments));
  GitHistory::Commits commits;
  for (absl::string_view line : absl::StrSplit(text, '\0', absl::SkipEmpty())) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits('\x1f', 5));
    HistoryCommit commit;
    if (fields.size() != 6 || !absl::SimpleAtoi(fields[3], &commit.time)) {
      return absl::InternalError(absl::StrCat("git log in ", repository.folder().string(),
                                              " printed a line that is not a commit: ", line));
    }
    commit.before = fields[0] == "-";
    commit.id = fields[1];
    commit.parents = absl::StrSplit(fields[2], ' ', absl::SkipEmpty());
    commit.date = fields[4];
    commit.title = fields[5];
    commit.pull_request = PullRequestOf(commit.title);
    commits.push_back(std::move(commit));
  }
  return commits;
}

}  // namespace

int PullRequestOf(absl::string_view title) {
  int found = 0;
  for (size_t at = title.find("(#"); at != title.npos; at = title.find("(#", at + 1)) {
    const absl::string_view rest = title.substr(at + 2);
    const absl::string_view digits = rest.substr(0, rest.find_first_not_of("0123456789"));
    int number = 0;
    const bool closed = digits.size() < rest.size() && rest[digits.size()] == ')';
    if (closed && absl::SimpleAtoi(digits, &number)) found = number;
  }
  return found;
}

absl::StatusOr<GitHistory::Commits> GitHistory::Between(const GitRepository& repository,
                                                        absl::string_view first,
                                                        absl::string_view last) {
  return Log(repository, {absl::StrCat("^", first), std::string(last)});
}

absl::StatusOr<GitHistory::Commits> GitHistory::Since(const GitRepository& repository,
                                                      absl::string_view tip,
                                                      absl::string_view day) {
  std::vector<std::string> range = {std::string(tip)};
  // git stops at a commit that is too old, so its ancestors are left out as well: no holes.
  if (!day.empty()) range.push_back(absl::StrCat("--since=", day, "T00:00:00Z"));
  return Log(repository, std::move(range));
}

absl::StatusOr<std::string> GitHistory::CommonAncestor(const GitRepository& repository,
                                                       absl::string_view a, absl::string_view b) {
  ASSIGN_OR_RETURN(const ProcessResult result,
                   repository.Run({"merge-base", std::string(a), std::string(b)}));
  if (result.ok()) return std::string(absl::StripAsciiWhitespace(result.out));
  return absl::NotFoundError(absl::StrCat(repository.folder().string(), " has no commit that both ",
                                          a, " and ", b,
                                          " descend from (if its history is shallow: git -C ",
                                          repository.folder().string(), " fetch --unshallow)"));
}

absl::StatusOr<std::vector<std::string>> GitHistory::PathsThatCount(
    const GitRepository& repository, const std::vector<std::string>& commits,
    const std::string& package) {
  std::set<std::string> files;
  for (const std::string& commit : commits) {
    // git gives up at a malformed tree. Such a commit declares nothing.
    ASSIGN_OR_RETURN(const ProcessResult top,
                     repository.Run({"ls-tree", "--name-only", "-z", commit}));
    if (!top.ok()) continue;
    for (const absl::string_view name : absl::StrSplit(top.out, '\0', absl::SkipEmpty())) {
      // A line end in a name would be a question of its own below.
      if (DeclaresRequirements(name) && CheckWrittenName(name).ok())
        files.insert(std::string(name));
    }
  }
  std::vector<std::string> paths = {package, absl::StrCat("src/", package)};
  paths.insert(paths.end(), files.begin(), files.end());
  return paths;
}

absl::StatusOr<std::vector<std::string>> GitHistory::ContentAt(
    const GitRepository& repository, const Commits& commits,
    const std::vector<std::string>& paths) {
  std::string questions;
  for (const HistoryCommit& commit : commits) {
    for (const std::string& path : paths) absl::StrAppend(&questions, commit.id, ":", path, "\n");
  }
  std::vector<std::string> contents(commits.size());
  if (questions.empty()) return contents;
  ASSIGN_OR_RETURN(const std::string answers,
                   repository.Output({"cat-file", "--batch-check=%(objectname)"}, questions));
  const std::vector<absl::string_view> lines = absl::StrSplit(answers, '\n', absl::SkipEmpty());
  if (lines.size() != commits.size() * paths.size()) {
    return absl::InternalError(absl::StrCat("git cat-file in ", repository.folder().string(),
                                            " answered ", lines.size(), " of ",
                                            commits.size() * paths.size(), " questions"));
  }
  for (size_t i = 0; i < lines.size(); ++i) {  // ID, or COMMIT:PATH SP missing
    absl::StrAppend(&contents[i / paths.size()], i % paths.size() ? " " : "",
                    lines[i].size() == 40 ? lines[i] : "-");
  }
  return contents;
}

}  // namespace bkm
