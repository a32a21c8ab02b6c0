// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/search/flaky_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace bkm {
namespace {

// The rates are measured in this many runs of each end.
constexpr int kEndRuns = 8;
// A commit is skipped after this many runs if none of them could be judged.
constexpr int kPatience = 2;
// The prior: no culprit is as likely as any culprit.
constexpr double kNoCulpritPrior = 0.5;
// A culprit is named only after this many runs with the late end's side.
constexpr int kCulpritRuns = 5;
// Ends whose rates differ by less count as alike: too many runs would be needed to tell them apart.
constexpr double kLeastDifference = 0.15;

// The estimated rate for `count` of `runs`, with Jeffreys' prior: never 0 or 1.
double Rate(int count, int runs) { return (count + 0.5) / (runs + 1.0); }

}  // namespace

std::vector<int> CandidatesBetween(const CommitGraph& graph, int early, int late) {
  std::vector<int> candidates;
  for (const int commit : graph.Ancestors(late)) {
    if (graph.IsAncestor(commit, early) || graph.before(commit)) continue;
    const bool changes =
        std::any_of(graph.parents(commit).begin(), graph.parents(commit).end(),
                    [&](int parent) { return graph.content(parent) != graph.content(commit); });
    if (changes) candidates.push_back(commit);
  }
  return candidates;
}

Posterior PosteriorOf(const CommitGraph& graph, const std::vector<int>& candidates,
                      const std::map<int, SideCounts>& counts, const FlakeRates& rates) {
  // Of the runs of one commit that is in the late end's state, or in the early end's.
  const auto of_commit = [&](const SideCounts& seen, bool is_after) {
    const double rate = is_after ? 1 - rates.miss : rates.flake;
    const double shared = seen.after * std::log(rate) + seen.before * std::log(1 - rate);
    const bool is_bad = is_after == (rates.after == Side::kBad);
    if (is_bad || rates.flaky_commits == 0) return shared;
    const double half = (seen.after + seen.before) * std::log(0.5);
    return std::log((1 - rates.flaky_commits) * std::exp(shared) +
                    rates.flaky_commits * std::exp(half));
  };
  struct Likelihood {
    int commit;
    double before, after;  // logarithms
  };
  std::vector<Likelihood> seen;
  for (const auto& [commit, of] : counts)
    seen.push_back({commit, of_commit(of, false), of_commit(of, true)});
  const auto likelihood = [&](auto is_after) {
    double log = 0;
    for (const Likelihood& one : seen) log += is_after(one.commit) ? one.after : one.before;
    return log;
  };
  const double none = std::log(kNoCulpritPrior) + likelihood([](int) { return false; });
  std::vector<double> logs;
  double largest = none;
  for (const int candidate : candidates) {
    logs.push_back(std::log((1 - kNoCulpritPrior) / static_cast<double>(candidates.size())) +
                   likelihood([&](int c) { return graph.IsAncestor(candidate, c); }));
    largest = std::max(largest, logs.back());
  }
  double sum = std::exp(none - largest);
  for (const double log : logs) sum += std::exp(log - largest);
  Posterior posterior{.no_culprit = std::exp(none - largest) / sum};
  for (const double log : logs) posterior.weights.push_back(std::exp(log - largest) / sum);
  return posterior;
}

FlakySearch::FlakySearch(const CommitGraph& graph, FlakySetup setup)
    : graph_(graph), setup_(std::move(setup)) {
  for (const int commit : graph_.Ancestors(setup_.late)) {
    if (!graph_.IsAncestor(commit, setup_.early) && !graph_.before(commit))
      places_.push_back(commit);
  }
  candidates_ = CandidatesBetween(graph_, setup_.early, setup_.late);
  places_.push_back(setup_.early);
  Update();
}

void FlakySearch::Tell(const Trial& trial, const Outcome& outcome) {
  in_flight_.erase(trial);
  if (trial.runtime_of != setup_.runtime_of || trial.forced) return;
  told_[trial] = setup_.criterion.SideOf(outcome.verdict, setup_.good_signature);
  Update();
}

void FlakySearch::Finish(SearchStatus status, std::string why) {
  done_ = true;
  result_.status = status;
  result_.why = std::move(why);
}

std::optional<Side> FlakySearch::Judged(const Trial& trial) const {
  const auto it = told_.find(trial);
  return it == told_.end() ? std::nullopt : std::optional<Side>(it->second);
}

FlakySearch::Counts FlakySearch::EndCounts(int end) const {
  Counts counts;
  for (int run = 1; run <= kEndRuns; ++run) {
    const std::optional<Side> side =
        Judged({.commit = end, .run = run, .runtime_of = setup_.runtime_of});
    if (!side) continue;
    ++(*side == Side::kNeither ? counts.nothing
       : *side == setup_.after ? counts.after
                               : counts.before);
  }
  return counts;
}

void FlakySearch::Update() {
  done_ = false;
  result_ = {.runs = static_cast<int>(told_.size())};
  counts_.clear();
  for (const auto& [trial, side] : told_) {
    Counts& counts = counts_[trial.commit];
    ++(side == Side::kNeither ? counts.nothing
       : side == setup_.after ? counts.after
                              : counts.before);
  }
  rates_known_ = MeasureEnds();
  if (!rates_known_ || done_) return;
  Weigh();
  Decide();
}

bool FlakySearch::MeasureEnds() {
  const Counts early = EndCounts(setup_.early), late = EndCounts(setup_.late);
  const auto told = [](const Counts& c) { return c.before + c.after + c.nothing; };
  if (told(early) < kEndRuns || told(late) < kEndRuns) return false;
  const int early_runs = early.before + early.after, late_runs = late.before + late.after;
  if (early_runs == 0 || late_runs == 0) {
    Finish(SearchStatus::kNone, "an end cannot be judged: name another");
    return true;
  }
  result_.flake_rate = setup_.flake_rate.value_or(Rate(early.after, early_runs));
  result_.miss_rate = Rate(late.before, late_runs);
  if (1 - result_.miss_rate - result_.flake_rate < kLeastDifference) {
    Finish(SearchStatus::kNone,
           absl::StrFormat("no culprit: the ends are alike: %s in %d of %d runs of the older and "
                           "%d of %d of the newer",
                           Name(setup_.after), early.after, early_runs, late.after, late_runs));
  }
  return true;
}

void FlakySearch::Weigh() {
  Posterior posterior =
      PosteriorOf(graph_, candidates_, counts_,
                  {.flake = result_.flake_rate, .miss = result_.miss_rate, .after = setup_.after});
  result_.no_culprit = posterior.no_culprit;
  weights_ = std::move(posterior.weights);
}

void FlakySearch::Decide() {
  for (size_t i = 0; i < candidates_.size(); ++i)
    result_.likely.emplace_back(candidates_[i], weights_[i]);
  std::stable_sort(result_.likely.begin(), result_.likely.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  const double best = result_.likely.empty() ? 0 : result_.likely[0].second;
  result_.confidence = std::max(best, result_.no_culprit);
  if (result_.confidence >= setup_.confidence) {
    if (result_.no_culprit >= best) {
      return Finish(SearchStatus::kNone, "no culprit: the newer end's state was chance");
    }
    if (Doubts().empty()) {
      result_.culprit = result_.likely[0].first;
      // Repeats made the search surer than they prove.
      const Posterior cautious = PosteriorOf(graph_, candidates_, counts_,
                                             {.flake = result_.flake_rate,
                                              .miss = result_.miss_rate,
                                              .after = setup_.after,
                                              .flaky_commits = kFlakyCommits});
      const auto place = std::find(candidates_.begin(), candidates_.end(), result_.culprit);
      result_.confidence =
          std::min(best, cautious.weights[static_cast<size_t>(place - candidates_.begin())]);
      return Finish(SearchStatus::kFound, "");
    }
  }
  if (result_.runs >= setup_.max_runs) {
    Finish(SearchStatus::kUnstable, absl::StrFormat("after %d runs no answer is more likely than "
                                                    "%.0f %%",
                                                    result_.runs, 100 * result_.confidence));
  }
}

std::vector<Trial> FlakySearch::Doubts() const {
  std::vector<Trial> doubts;
  const bool sure = !result_.likely.empty() && result_.likely[0].second >= setup_.confidence;
  if (!sure) return doubts;
  const int culprit = result_.likely[0].first;
  const auto it = counts_.find(culprit);
  const int seen = it == counts_.end() ? 0 : it->second.after;
  Trial trial{.commit = culprit, .run = 0, .runtime_of = setup_.runtime_of};
  for (int missing = kCulpritRuns - seen; missing > 0; --missing) {
    do {
      ++trial.run;
    } while (told_.contains(trial));
    doubts.push_back(trial);
  }
  return doubts;
}

Trial FlakySearch::NextRun(int commit) const {
  Trial trial{.commit = commit, .run = 1, .runtime_of = setup_.runtime_of};
  while (told_.contains(trial) || in_flight_.contains(trial)) ++trial.run;
  return trial;
}

double FlakySearch::ProbabilityUpTo(int commit) const {
  double sum = 0;
  for (size_t i = 0; i < candidates_.size(); ++i)
    sum += graph_.IsAncestor(candidates_[i], commit) ? weights_[i] : 0;
  return sum;
}

int FlakySearch::ClosestTo(double probability) const {
  int best = setup_.late;
  double least = std::numeric_limits<double>::infinity();
  int fewest_runs = 0;
  for (const int commit : places_) {
    const auto it = counts_.find(commit);
    const Counts counts = it == counts_.end() ? Counts() : it->second;
    if (counts.nothing >= kPatience && counts.before + counts.after == 0) continue;
    const double distance = std::abs(ProbabilityUpTo(commit) - probability);
    const int runs = NextRun(commit).run;
    const bool as_near = std::abs(distance - least) < 1e-9;
    if (as_near ? runs >= fewest_runs : distance > least) continue;
    best = commit;
    least = distance;
    fewest_runs = runs;
  }
  return best;
}

std::vector<Trial> FlakySearch::Wanted(int room) {
  std::vector<Trial> wanted;
  const auto ask = [&](const Trial& trial) {
    if (static_cast<int>(wanted.size()) < room && in_flight_.insert(trial).second)
      wanted.push_back(trial);
  };
  if (done_) return wanted;
  if (!rates_known_) {
    for (int run = 1; run <= kEndRuns; ++run) {
      for (const int end : {setup_.late, setup_.early}) {
        const Trial trial{.commit = end, .run = run, .runtime_of = setup_.runtime_of};
        if (!Judged(trial)) ask(trial);
      }
    }
    return wanted;
  }
  if (const std::vector<Trial> doubts = Doubts(); !doubts.empty()) {
    for (const Trial& trial : doubts) ask(trial);
    return wanted;
  }
  // Thresholds that cut the probability into equal parts. A trial in flight takes the nearest one.
  const int parts = room + static_cast<int>(in_flight_.size());
  std::vector<double> thresholds;
  for (int i = 1; i <= parts; ++i) thresholds.push_back(static_cast<double>(i) / (parts + 1));
  for (const Trial& trial : in_flight_) {
    const double at = ProbabilityUpTo(trial.commit);
    thresholds.erase(
        std::min_element(thresholds.begin(), thresholds.end(),
                         [&](double a, double b) { return std::abs(a - at) < std::abs(b - at); }));
  }
  for (const double threshold : thresholds) ask(NextRun(ClosestTo(threshold)));
  return wanted;
}

}  // namespace bkm
