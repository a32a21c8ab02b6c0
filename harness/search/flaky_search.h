// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SEARCH_FLAKY_SEARCH_H_
#define HARNESS_SEARCH_FLAKY_SEARCH_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/search/commit_graph.h"
#include "harness/search/criterion.h"
#include "harness/search/trial.h"

namespace bkm {

struct FlakySetup {
  int late = 0;
  int early = 0;  // an ancestor of `late`
  int runtime_of = -1;
  Criterion criterion;
  std::string good_signature;
  Side after = Side::kBad;  // the late end's side if there is a culprit
  // How often a commit before the culprit has the late end's side; absent: measured at the early
  // end.
  std::optional<double> flake_rate;
  double confidence = 0.99;
  int max_runs = 300;
};

struct FlakyResult {
  SearchStatus status = SearchStatus::kUnstable;
  int culprit = -1;
  double confidence = 0;  // of the answer, or of the likeliest one if no answer was reached
  double flake_rate = 0;  // how often the late end's side is seen before the culprit
  double miss_rate = 0;   // how often it is not seen from the culprit on
  double no_culprit = 0;  // the probability that there is no culprit
  std::vector<std::pair<int, double>> likely;  // candidates with probabilities, likeliest first
  int runs = 0;
  std::string why;
};

// How the runs of one commit ended.
struct SideCounts {
  int before = 0;  // outcomes of the early end's side
  int after = 0;
  int nothing = 0;
};

// The commits between the ends that may be the culprit: those that change something.
std::vector<int> CandidatesBetween(const CommitGraph& graph, int early, int late);

// The probability of each candidate, and of "no culprit", given how the runs of each commit ended.
struct Posterior {
  std::vector<double> weights;  // in the order of the candidates; with no_culprit they sum to 1
  double no_culprit = 0;
};
struct FlakeRates {
  double flake = 0;  // how often a commit before the culprit has the late end's side
  double miss = 0;   // how often a commit from the culprit on has not
  Side after = Side::kBad;
  // The share of commits in the good state that fail half of the time instead. Where it is not 0,
  // repeats of one commit prove less than runs of several.
  double flaky_commits = 0;
};
// The share that a stated confidence allows for.
inline constexpr double kFlakyCommits = 0.05;
Posterior PosteriorOf(const CommitGraph& graph, const std::vector<int>& candidates,
                      const std::map<int, SideCounts>& counts, const FlakeRates& rates);

// Finds the culprit of a flaky cell by Bayes' rule, after Henderson et al., Flake Aware Culprit
// Finding, ICST 2023. Each candidate has a probability, and so does "no culprit". The rates at
// which the two sides are seen before and after a culprit are measured at the ends first and then
// kept; each outcome updates the probabilities by them. The next trials cut the remaining
// probability into equal parts, until one answer is likely enough. In contrast to the paper, a
// commit after the culprit may look like one before it, and histories may have merges.
class FlakySearch : public HistorySearch {
 public:
  FlakySearch(const CommitGraph& graph, FlakySetup setup);

  std::vector<Trial> Wanted(int room) override;
  void Tell(const Trial& trial, const Outcome& outcome) override;
  bool done() const override { return done_; }
  const FlakyResult& result() const { return result_; }

 private:
  using Counts = SideCounts;

  void Update();
  // Sets the rates from the first runs of both ends; false if some runs are missing.
  bool MeasureEnds();
  void Weigh();
  void Decide();
  // The trials that show that the likeliest culprit is not a commit that fails half of the time.
  std::vector<Trial> Doubts() const;
  void Finish(SearchStatus status, std::string why);
  std::optional<Side> Judged(const Trial& trial) const;
  Counts EndCounts(int end) const;
  Trial NextRun(int commit) const;
  // The probability that the culprit is `commit` or an ancestor of it.
  double ProbabilityUpTo(int commit) const;
  int ClosestTo(double probability) const;

  const CommitGraph& graph_;
  const FlakySetup setup_;
  std::vector<int> candidates_;  // commits that may be the culprit
  std::vector<int> places_;      // commits that may be measured
  std::map<Trial, Side> told_;
  std::set<Trial> in_flight_;

  // Derived from the members above by Update().
  bool done_ = false;
  bool rates_known_ = false;
  FlakyResult result_;
  std::map<int, Counts> counts_;
  std::vector<double> weights_;  // per candidate; with no_culprit they sum to 1
};

}  // namespace bkm

#endif  // HARNESS_SEARCH_FLAKY_SEARCH_H_
