// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/search/split.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace bkm {
namespace {

// Candidates in groups that the outcomes of the chosen commits will tell apart.
class Groups {
 public:
  Groups(const CommitGraph& graph, const std::vector<int>& candidates)
      : graph_(graph), candidates_(candidates), group_(candidates.size(), 0), sizes_{0} {
    sizes_[0] = static_cast<int>(candidates.size());
  }

  void Refine(int commit) {
    std::map<int, int> split_off;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (!graph_.IsAncestor(candidates_[i], commit)) continue;
      const auto [it, is_new] = split_off.emplace(group_[i], static_cast<int>(sizes_.size()));
      if (is_new) sizes_.push_back(0);
      --sizes_[group_[i]];
      group_[i] = it->second;
      ++sizes_[it->second];
    }
  }

  // The sum of squared group sizes. Divided by the number of candidates, it is the expected number
  // that is left.
  double Cost() const {
    double cost = 0;
    for (const int size : sizes_) cost += double{1} * size * size;
    return cost;
  }
  double CostWith(int commit) const {
    std::vector<int> inside(sizes_.size(), 0);
    for (size_t i = 0; i < candidates_.size(); ++i)
      inside[group_[i]] += graph_.IsAncestor(candidates_[i], commit);
    double cost = 0;
    for (size_t g = 0; g < sizes_.size(); ++g) {
      const double out = sizes_[g] - inside[g];
      cost += double{1} * inside[g] * inside[g] + out * out;
    }
    return cost;
  }

 private:
  const CommitGraph& graph_;
  const std::vector<int>& candidates_;
  std::vector<int> group_;  // of each candidate
  std::vector<int> sizes_;
};

// The probability that each open commit can be judged. The probability that it cannot halves for
// each length of the skipped stretch between the two.
std::vector<double> Judgeable(const SplitQuestion& question) {
  std::vector<double> likely(question.open.size(), 1.0);
  if (question.skipped.empty()) return likely;
  std::map<int, int> place;
  for (const int commit : question.candidates)
    place.emplace(commit, static_cast<int>(place.size()));
  int first = std::numeric_limits<int>::max(), last = 0;
  for (const int commit : question.skipped) {
    first = std::min(first, place[commit]);
    last = std::max(last, place[commit]);
  }
  const double width = last - first + 1;
  for (size_t i = 0; i < question.open.size(); ++i) {
    int nearest = std::numeric_limits<int>::max();
    for (const int commit : question.skipped)
      nearest = std::min(nearest, std::abs(place[commit] - place[question.open[i]]));
    likely[i] = 1 - std::exp2(-nearest / width);
  }
  return likely;
}

int BestBeside(const CommitGraph& graph, const SplitQuestion& question,
               const std::vector<double>& judgeable, const std::vector<int>& others) {
  Groups groups(graph, question.candidates);
  for (const int commit : question.in_flight) groups.Refine(commit);
  for (const int commit : others) groups.Refine(commit);
  const double without = groups.Cost();
  int best = -1;
  double best_cost = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < question.open.size(); ++i) {
    if (std::find(others.begin(), others.end(), question.open[i]) != others.end()) continue;
    const double cost =
        judgeable[i] * groups.CostWith(question.open[i]) + (1 - judgeable[i]) * without;
    if (cost >= best_cost) continue;
    best_cost = cost;
    best = question.open[i];
  }
  return best;
}

}  // namespace

std::vector<int> BestSplits(const CommitGraph& graph, const SplitQuestion& question, int room) {
  const std::vector<double> judgeable = Judgeable(question);
  std::vector<int> chosen;
  const int count = std::min<int>(room, static_cast<int>(question.open.size()));
  while (static_cast<int>(chosen.size()) < count)
    chosen.push_back(BestBeside(graph, question, judgeable, chosen));
  // A greedy choice is not jointly optimal: choose each again, given the others, until none
  // changes.
  for (int round = 0; round < 8 && count > 1; ++round) {
    const std::vector<int> before = chosen;
    for (int& commit : chosen) {
      std::vector<int> others = chosen;
      std::erase(others, commit);
      commit = BestBeside(graph, question, judgeable, others);
    }
    if (chosen == before) break;
  }
  return chosen;
}

}  // namespace bkm
