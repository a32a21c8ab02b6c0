// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SEARCH_HISTORY_AXIS_H_
#define HARNESS_SEARCH_HISTORY_AXIS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/matrix/plan.h"
#include "harness/search/commit_graph.h"
#include "harness/search/named_commit.h"
#include "harness/source/git_history.h"
#include "harness/source/git_sources.h"

namespace bkm {

enum class AxisKind { kEngine, kLibrary, kBoth };
const char* Name(AxisKind kind);

// Revisions as the user wrote them; for both subjects "ENGINE,LIBRARY".
struct AxisEnds {
  std::string one;    // empty: the cell's own revision
  std::string other;  // empty: as far back as `since` or the history goes
  std::string since;  // YYYY-MM-DD
};

// The history of a cell's engine, its library, or both: a graph of commits, and the cell at each.
// For both, the graph is a line that merges the two mainlines by time; each step is one commit of
// either.
class HistoryAxis {
 public:
  // InvalidArgument if the subject is not a git commit.
  static absl::StatusOr<HistoryAxis> Create(const PlannedCell& cell, AxisKind kind,
                                            const AxisEnds& ends, GitSources& sources,
                                            const SourceCatalog& catalog);

  const CommitGraph& graph() const { return graph_; }
  AxisKind kind() const { return kind_; }
  // The newer end.
  int late() const { return graph_.size() - 1; }
  std::optional<int> early() const { return early_; }
  // Whether `late` is AxisEnds::one.
  bool one_is_late() const { return one_is_late_; }
  // The mainline commits of releases (tags), newest first, without the newer end: the tagged
  // commit, or the one where the tag's branch started. For an axis of one subject.
  absl::StatusOr<std::vector<std::pair<int, std::string>>> Releases(GitSources& sources) const;
  // For people: how ends were replaced that are not ancestor and descendant; else empty.
  const std::string& note() const { return note_; }

  // The cell with the subjects of this axis at a commit.
  PlannedCell CellAt(int commit) const;
  // The commit itself; for both subjects the later one.
  const HistoryCommit& CommitAt(int commit) const { return commits_[commit].commit; }
  // The source of that commit: "torchtitan".
  const std::string& SourceAt(int commit) const { return commits_[commit].source; }
  NamedCommit Named(int commit) const;
  // "torchtitan 1944dc9ab (2026-04-01, #2345) Transpose it back", with or without the title.
  std::string Describe(int commit, bool with_title = true) const {
    return ToText(Named(commit), with_title);
  }

 private:
  struct Place {
    std::string source;
    HistoryCommit commit;
    std::string engine, library;  // commit ids; empty for a subject that stays fixed
  };
  struct Side {  // the history of one subject
    std::string source;
    GitHistory::Commits commits;
    std::vector<std::string> contents;
    std::optional<std::string> early;  // id
    bool one_is_late = true;
    std::string note;
  };

  static absl::StatusOr<Side> HistoryOf(const SubjectSpec& subject, AxisEnds ends,
                                        GitSources& sources, const SourceCatalog& catalog);
  void SetGraph(Side side);
  absl::Status SetLine(Side engine, Side library);

  PlannedCell cell_;
  AxisKind kind_ = AxisKind::kLibrary;
  std::vector<Place> commits_;
  CommitGraph graph_;
  std::optional<int> early_;
  bool one_is_late_ = true;
  std::string note_;
};

}  // namespace bkm

#endif  // HARNESS_SEARCH_HISTORY_AXIS_H_
