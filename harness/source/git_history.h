// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SOURCE_GIT_HISTORY_H_
#define HARNESS_SOURCE_GIT_HISTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/source/git_repository.h"

namespace bkm {

// One commit of a history and its parents.
struct HistoryCommit {
  std::string id;    // 40 hex digits
  std::string date;  // YYYY-MM-DD of the committer, UTC
  std::string title;
  std::vector<std::string> parents;  // ids; the branch that was merged into comes first
  int pull_request = 0;              // 0: the title names none
  int64_t time = 0;                  // of the committer, seconds since 1970
  // True for a commit just outside the history: a parent of one of its commits.
  bool before = false;
  bool operator==(const HistoryCommit&) const = default;
};

// Lists the commits of a repository, including those of merged branches. Parents come before
// children.
class GitHistory {
 public:
  using Commits = std::vector<HistoryCommit>;

  // The commits reachable from `last` but not from `first`, and their parents outside that set
  // (marked `before`). Empty when `last` is `first` or an ancestor of it.
  static absl::StatusOr<Commits> Between(const GitRepository& repository, absl::string_view first,
                                         absl::string_view last);
  // The commits reachable from `tip` since the day YYYY-MM-DD, and their first older ancestors
  // (marked `before`). All commits when `day` is empty.
  static absl::StatusOr<Commits> Since(const GitRepository& repository, absl::string_view tip,
                                       absl::string_view day);

  // The best common ancestor. NotFound when there is none, for example because a shallow history
  // ends too early.
  static absl::StatusOr<std::string> CommonAncestor(const GitRepository& repository,
                                                    absl::string_view a, absl::string_view b);

  // The paths in the trees of `commits` that a cell can depend on: the package, in each place where
  // it may be, and the files that declare requirements.
  static absl::StatusOr<std::vector<std::string>> PathsThatCount(
      const GitRepository& repository, const std::vector<std::string>& commits,
      const std::string& package);

  // For each commit, one string with the object ids at `paths` ("-" for a missing path). Equal
  // strings mean equal content.
  static absl::StatusOr<std::vector<std::string>> ContentAt(const GitRepository& repository,
                                                            const Commits& commits,
                                                            const std::vector<std::string>& paths);
};

// 1234 for "Rename the knob (#1234)". The last number if there are several, as in the title of a
// revert; 0 if there is none.
int PullRequestOf(absl::string_view title);

}  // namespace bkm

#endif  // HARNESS_SOURCE_GIT_HISTORY_H_
