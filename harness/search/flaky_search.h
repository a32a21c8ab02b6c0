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
  int early = 0;  // an ancestor of it
  int runtime_of = -1;
  Criterion criterion;
  std::string good_signature;
  Side after = Side::kBad;  // the late end's side, where there is a culprit
  // How often a commit before the culprit looks as one after it; absent: measured at the early end.
  std::optional<double> flake_rate;
  double confidence = 0.99;
  int max_runs = 300;
};

struct FlakyResult {
  SearchStatus status = SearchStatus::kUnstable;
  int culprit = -1;
  double confidence = 0;  // of the answer, or of the likeliest one where there is none
  double flake_rate = 0;  // before the culprit: how often the late end's side is seen
  double miss_rate = 0;   // from the culprit on: how often it is not
  double no_culprit = 0;  // how likely it is that there is none
  std::vector<std::pair<int, double>> likely;  // commits that may be it, the likeliest first
  int runs = 0;
  std::string why;
};

// Finds the culprit of a cell that does not always come to the same, by Bayes: Henderson et al.,
// Flake Aware Culprit Finding, ICST 2023. Every candidate, and that there is none, has a
// probability; each outcome changes them by the rates at which the two sides are seen before and
// after a culprit, which are measured at the ends first and then held; the next trials cut the
// probability that is left into equal parts; it ends when one answer is likely enough. Beyond the
// paper, a commit after the culprit may look as one before it, and histories may have merges.
class FlakySearch : public HistorySearch {
 public:
  FlakySearch(const CommitGraph& graph, FlakySetup setup);

  std::vector<Trial> Wanted(int room) override;
  void Tell(const Trial& trial, const Outcome& outcome) override;
  bool done() const override { return done_; }
  const FlakyResult& result() const { return result_; }

 private:
  struct Counts {
    int before = 0;  // outcomes of the early end's side
    int after = 0;
    int nothing = 0;
  };

  void Update();
  // Rates from the first runs of both ends; false: some are missing.
  bool MeasureEnds();
  void Weigh();
  void Decide();
  void Finish(SearchStatus status, std::string why);
  std::optional<Side> Judged(const Trial& trial) const;
  Counts EndCounts(int end) const;
  Trial NextRun(int commit) const;
  // How likely it is that the culprit is `commit` or lies before it.
  double ProbabilityUpTo(int commit) const;
  int ClosestTo(double probability) const;

  const CommitGraph& graph_;
  const FlakySetup setup_;
  std::vector<int> candidates_;  // that may be the culprit
  std::vector<int> places_;      // that may be measured
  std::map<Trial, Side> told_;
  std::set<Trial> in_flight_;

  // Made from the above by Update().
  bool done_ = false;
  bool rates_known_ = false;
  FlakyResult result_;
  std::map<int, Counts> counts_;
  std::vector<double> weights_;  // of each candidate; they and no_culprit sum to 1
};

}  // namespace bkm

#endif  // HARNESS_SEARCH_FLAKY_SEARCH_H_
