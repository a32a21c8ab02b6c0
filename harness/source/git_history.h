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

// One commit of a history and how it hangs together with the others.
struct HistoryCommit {
  std::string id;    // 40 hex digits
  std::string date;  // YYYY-MM-DD of the committer, UTC
  std::string title;
  std::vector<std::string> parents;  // ids, the branch that was merged into first
  int pull_request = 0;              // 0: the title does not say
  int64_t time = 0;                  // of the committer, seconds since 1970
  // Not of the history itself: a parent of one of its commits that lies before it.
  bool before = false;
  bool operator==(const HistoryCommit&) const = default;
};

// Walks the commits of a repository, all that are reachable: merged branches too. Parents stand
// before children.
class GitHistory {
 public:
  using Commits = std::vector<HistoryCommit>;

  // Commits reachable from `last` and not from `first`, and (marked `before`) their parents outside
  // of these. Empty when `last` is `first` or lies before it.
  static absl::StatusOr<Commits> Between(const GitRepository& repository, absl::string_view first,
                                         absl::string_view last);
  // Commits reachable from `tip` down to the first that are older than the day YYYY-MM-DD, and
  // (marked `before`) these. An empty day: all.
  static absl::StatusOr<Commits> Since(const GitRepository& repository, absl::string_view tip,
                                       absl::string_view day);

  // The best commit that both descend from; NotFound when there is none, as where a shallow history
  // ends too early.
  static absl::StatusOr<std::string> CommonAncestor(const GitRepository& repository,
                                                    absl::string_view a, absl::string_view b);

  // What of the trees of `commits` a cell can depend on: the package, wherever it lies, and what
  // declares the requirements.
  static absl::StatusOr<std::vector<std::string>> PathsThatCount(
      const GitRepository& repository, const std::vector<std::string>& commits,
      const std::string& package);

  // For each commit the ids of what lies at each of `paths` ("-" where nothing does), as one
  // string: equal strings, equal content there.
  static absl::StatusOr<std::vector<std::string>> ContentAt(const GitRepository& repository,
                                                            const Commits& commits,
                                                            const std::vector<std::string>& paths);
};

// 1234 for "Rename the knob (#1234)"; of several the last, as a revert names two. 0: none.
int PullRequestOf(absl::string_view title);

}  // namespace bkm

#endif  // HARNESS_SOURCE_GIT_HISTORY_H_
