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

// Revisions as the user wrote them; of both subjects "ENGINE,LIBRARY".
struct AxisEnds {
  std::string one;    // empty: the cell's own
  std::string other;  // empty: as far back as the history goes, or as `since`
  std::string since;  // YYYY-MM-DD
};

// The history of a cell's engine, of its library, or of both at once: a graph of commits, and the
// cell at each. Both at once are a line: their mainlines as they were at each moment, every step
// one commit of either.
class HistoryAxis {
 public:
  // InvalidArgument where the subject is no git commit.
  static absl::StatusOr<HistoryAxis> Create(const PlannedCell& cell, AxisKind kind,
                                            const AxisEnds& ends, GitSources& sources,
                                            const SourceCatalog& catalog);

  const CommitGraph& graph() const { return graph_; }
  AxisKind kind() const { return kind_; }
  // The end that the other one lies before.
  int late() const { return graph_.size() - 1; }
  std::optional<int> early() const { return early_; }
  // Whether `late` is AxisEnds::one.
  bool one_is_late() const { return one_is_late_; }
  // Where releases (tags) left the mainline, newest first, without the newer end itself: the commit
  // that carries the tag, or where its branch parted. Of one subject.
  absl::StatusOr<std::vector<std::pair<int, std::string>>> Releases(GitSources& sources) const;
  // What was done with ends that are not on one line, for people; mostly empty.
  const std::string& note() const { return note_; }

  // The cell with its subject, or both, at a commit.
  PlannedCell CellAt(int commit) const;
  // The commit itself; of both subjects the one that came last.
  const HistoryCommit& CommitAt(int commit) const { return commits_[commit].commit; }
  // Whose commit that is: "torchtitan".
  const std::string& SourceAt(int commit) const { return commits_[commit].source; }
  NamedCommit Named(int commit) const;
  std::string Describe(int commit, bool with_title = true) const {
    return ToText(Named(commit), with_title);
  }

 private:
  struct Place {
    std::string source;
    HistoryCommit commit;
    std::string engine, library;  // ids, of the subjects that the axis moves
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
