// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SEARCH_COMMIT_GRAPH_H_
#define HARNESS_SEARCH_COMMIT_GRAPH_H_

#include <cstdint>
#include <string>
#include <vector>

namespace bkm {

// One commit as a search sees it.
struct GraphCommit {
  // Indices, all smaller than the commit's own. The first parent is on the mainline.
  std::vector<int> parents;
  std::string content;  // equal for commits that a cell cannot tell apart
  int64_t time = 0;     // seconds since 1970
  bool before = false;  // present only as a parent; its own history is not in the graph
};

// A history: commits by index, parents before children. Immutable.
class CommitGraph {
 public:
  CommitGraph() = default;
  explicit CommitGraph(std::vector<GraphCommit> commits);

  int size() const { return static_cast<int>(commits_.size()); }
  const std::vector<int>& parents(int commit) const { return commits_[commit].parents; }
  int64_t time(int commit) const { return commits_[commit].time; }
  bool before(int commit) const { return commits_[commit].before; }
  // A number shared by commits with equal content.
  int content(int commit) const { return contents_[commit]; }
  int contents() const { return content_count_; }

  // Whether `ancestor` is `commit` or one of its ancestors.
  bool IsAncestor(int ancestor, int commit) const {
    return (ancestors_[commit][ancestor / 64] >> (ancestor % 64)) & 1;
  }
  // `commit` and its ancestors, in order.
  std::vector<int> Ancestors(int commit) const;
  // `tip`, its first parent, and so on.
  std::vector<int> Mainline(int tip) const;

 private:
  std::vector<GraphCommit> commits_;
  std::vector<int> contents_;
  int content_count_ = 0;
  std::vector<std::vector<uint64_t>> ancestors_;  // a bit per commit
};

}  // namespace bkm

#endif  // HARNESS_SEARCH_COMMIT_GRAPH_H_
