// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/search/commit_graph.h"

#include <map>

#include "harness/base/check.h"

namespace bkm {

CommitGraph::CommitGraph(std::vector<GraphCommit> commits) : commits_(std::move(commits)) {
  std::map<std::string, int> numbers;
  const size_t words = commits_.size() / 64 + 1;
  for (int i = 0; i < size(); ++i) {
    contents_.push_back(
        numbers.emplace(commits_[i].content, static_cast<int>(numbers.size())).first->second);
    std::vector<uint64_t> bits(words);
    bits[i / 64] |= uint64_t{1} << (i % 64);
    for (const int parent : commits_[i].parents) {
      HARNESS_CHECK(parent >= 0 && parent < i) << "commit " << i << " has the parent " << parent;
      for (size_t word = 0; word < words; ++word) bits[word] |= ancestors_[parent][word];
    }
    ancestors_.push_back(std::move(bits));
  }
  content_count_ = static_cast<int>(numbers.size());
}

std::vector<int> CommitGraph::Ancestors(int commit) const {
  std::vector<int> found;
  for (int i = 0; i <= commit; ++i) {
    if (IsAncestor(i, commit)) found.push_back(i);
  }
  return found;
}

std::vector<int> CommitGraph::Mainline(int tip) const {
  std::vector<int> line = {tip};
  while (!parents(line.back()).empty()) line.push_back(parents(line.back())[0]);
  return line;
}

}  // namespace bkm
