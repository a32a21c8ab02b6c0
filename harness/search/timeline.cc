// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/search/timeline.h"

#include <algorithm>
#include <cmath>

namespace bkm {

Timeline::Timeline(const CommitGraph& graph, TimelineSetup setup)
    : graph_(graph), setup_(setup), line_(graph.Mainline(setup.late)) {
  std::reverse(line_.begin(), line_.end());
  Update();
}

void Timeline::Tell(const Trial& trial, const Outcome& outcome) {
  in_flight_.erase(trial);
  if (trial.runtime_of != setup_.runtime_of || trial.forced) return;
  told_[trial] = outcome;
  Update();
}

const Outcome* Timeline::OutcomeOf(int commit) const {
  const auto it = known_.find(graph_.content(commit));
  return it == known_.end() ? nullptr : it->second;
}

bool Timeline::IsJudged(int place) const {
  const Outcome* outcome = OutcomeOf(line_[place]);
  return outcome && SaysSomething(outcome->verdict);
}

std::string Timeline::SignatureAt(int place) const {
  return ShortText(OutcomeOf(line_[place])->verdict);
}

bool Timeline::IsBusy(int place) const {
  return std::any_of(in_flight_.begin(), in_flight_.end(), [&](const Trial& trial) {
    return trial.run == 1 && graph_.content(trial.commit) == graph_.content(line_[place]);
  });
}

void Timeline::Update() {
  known_.clear();
  for (const auto& [trial, outcome] : told_) {
    if (trial.run == 1) known_.emplace(graph_.content(trial.commit), &outcome);
  }
  result_ = {};
  gaps_.clear();
  int last = -1;
  for (int place = 0; place < static_cast<int>(line_.size()); ++place) {
    if (!IsJudged(place)) continue;
    const std::string signature = SignatureAt(place);
    const bool same = last >= 0 && result_.stretches.back().signature == signature;
    if (!same) {
      if (last >= 0) {
        gaps_.push_back({last, place});
        Boundary boundary{.before = line_[last], .after = line_[place]};
        boundary.candidates.assign(line_.begin() + last + 1, line_.begin() + place + 1);
        result_.boundaries.push_back(std::move(boundary));
      }
      result_.stretches.push_back({.first = line_[place], .signature = signature});
    }
    Stretch& stretch = result_.stretches.back();
    if (same) result_.resolution = std::max(result_.resolution, place - last - 1);
    stretch.commits += same ? place - last : 1;
    stretch.last = line_[place];
    ++stretch.measured;
    last = place;
  }
  for (Boundary& boundary : result_.boundaries) {
    bool known = true, same = true;
    for (const int commit : {boundary.before, boundary.after}) {
      const auto again = told_.find({.commit = commit, .run = 2, .runtime_of = setup_.runtime_of});
      known = known && again != told_.end();
      same = same && known &&
             ShortText(again->second.verdict) == ShortText(OutcomeOf(commit)->verdict);
    }
    if (known) boundary.confirmed = same;
  }
  done_ = in_flight_.empty() && Needed().empty();
}

std::optional<int> Timeline::Cut(const Gap& gap, const std::set<int>& busy, int* width) const {
  std::optional<int> best;
  *width = 0;
  int from = gap.before;
  for (int to = gap.before + 1; to <= gap.after; ++to) {
    if (to != gap.after && !busy.contains(to) && !IsBusy(to)) continue;
    // Take the place nearest to the middle of the part that has no outcome.
    const double middle = (from + to) / 2.0;
    std::optional<int> nearest;
    for (int place = from + 1; place < to; ++place) {
      if (OutcomeOf(line_[place])) continue;
      if (!nearest || std::abs(place - middle) < std::abs(*nearest - middle)) nearest = place;
    }
    if (nearest && to - from > *width) {
      *width = to - from;
      best = nearest;
    }
    from = to;
  }
  return best;
}

// All trials that the known outcomes call for, without those in flight.
std::vector<Trial> Timeline::Needed() const {
  std::vector<Trial> needed;
  const int count = static_cast<int>(line_.size());
  std::set<int> contents;
  const auto sample = [&](int place) {
    if (OutcomeOf(line_[place]) || IsBusy(place)) return;
    if (contents.insert(graph_.content(line_[place])).second) needed.push_back(MakeTrial(place, 1));
  };
  sample(count - 1);
  for (int place = 0; place < count; place += setup_.every) sample(place);
  std::set<int> busy;
  for (;;) {
    int widest = 0;
    std::optional<int> best;
    for (const Gap& gap : gaps_) {
      int width = 0;
      const std::optional<int> cut = Cut(gap, busy, &width);
      if (!cut || width <= widest) continue;
      widest = width;
      best = cut;
    }
    if (!best || needed.size() > 64) break;
    busy.insert(*best);
    sample(*best);
  }
  if (needed.empty() && setup_.confirm && in_flight_.empty()) return Confirmations();
  return needed;
}

std::vector<Trial> Timeline::Confirmations() const {
  std::set<Trial> wanted;
  for (const Boundary& boundary : result_.boundaries) {
    for (const int commit : {boundary.before, boundary.after})
      wanted.insert({.commit = commit, .run = 2, .runtime_of = setup_.runtime_of});
  }
  std::erase_if(wanted, [&](const Trial& trial) {
    return told_.contains(trial) || in_flight_.contains(trial);
  });
  return {wanted.begin(), wanted.end()};
}

std::vector<Trial> Timeline::Wanted(int room) {
  if (done_ || room <= 0) return {};
  std::vector<Trial> wanted = Needed();
  if (static_cast<int>(wanted.size()) > room) wanted.resize(room);
  in_flight_.insert(wanted.begin(), wanted.end());
  return wanted;
}

}  // namespace bkm
