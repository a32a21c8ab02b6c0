// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SEARCH_BISECTION_H_
#define HARNESS_SEARCH_BISECTION_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/search/commit_graph.h"
#include "harness/search/criterion.h"
#include "harness/search/trial.h"

namespace bkm {

struct BisectionSetup {
  int late = 0;              // the end with the longer history
  std::optional<int> early;  // an ancestor of it; absent: found by stepping back
  // Ancestors of `late` to step back by, newest first; empty: those of 1, 2, 4, ... days before.
  std::vector<int> steps = {};
  // Commits that are measured before any others that may be the culprit, each beside its first
  // parent, and before the early end: once something after that is on the other side than the late
  // end, it need not be measured. A sole suspect is confirmed while its first runs go on. They
  // decide nothing: one by one, a wrong one costs two trials.
  std::vector<int> suspects = {};
  int runtime_of = -1;  // whose runtime every trial asks for
  Criterion criterion;
};

struct BisectionResult {
  SearchStatus status = SearchStatus::kNone;
  int culprit = -1;             // found: the first commit in the state of the late end
  std::vector<int> parents;     // found: of the culprit, each in the state of the early end
  std::vector<int> candidates;  // what is left: one of them is the culprit
  std::optional<int> early;     // the ends, as given or found
  int late = 0;
  Side before = Side::kNeither;  // the early end's side
  Side after = Side::kNeither;   // the late end's: kBad: the culprit broke it, kGood: it mended it
  std::string why;               // for people, in one sentence, where nothing was found
};

// Finds a commit that is on one side of the criterion while all its parents are on the other, as
// git bisect does by counting ancestors, with several trials in flight. It holds whatever else
// changed between the ends: where a history is good and bad in turn, it is one of the boundaries.
// Commits of equal content have one outcome.
class Bisection : public HistorySearch {
 public:
  Bisection(const CommitGraph& graph, BisectionSetup setup);

  std::vector<Trial> Wanted(int room) override;
  void Tell(const Trial& trial, const Outcome& outcome) override;
  bool done() const override { return phase_ == Phase::kDone; }
  // What is known so far; final once done.
  const BisectionResult& result() const { return result_; }
  // The side of a commit that was measured, itself or by an equal one.
  std::optional<Side> SideOf(int commit) const { return sides_[commit]; }
  // By what is known of the good end.
  Side Classify(const Verdict& verdict) const;
  const std::string& good_signature() const { return good_signature_; }
  const BisectionSetup& setup() const { return setup_; }

 private:
  enum class Phase { kEnds, kSplitting, kConfirming, kDone };

  void Update();
  // Whether both ends are known, and differ.
  bool FindEnds();
  bool FindEarly(Side late);
  bool CompareEnds();
  // Whether what the suspects tell may make the early end's outcome unnecessary.
  bool EarlyMayWait() const;
  // Whether a commit between the ends, on the other side than the late end, does for the early one.
  bool FindEarlySubstitute(Side late);
  // Until both given ends are known they are taken to differ, so that no slot is empty meanwhile.
  void Presume();
  void ClassifyAll();
  // The smallest candidates that follow from what is known.
  void FindTip();
  void Narrow();
  void Confirm();
  void Finish(SearchStatus status, std::string why);
  const Verdict* Known(int commit) const;
  std::string SignatureOf(int commit) const;
  std::vector<int> CandidatesOf(int tip) const;
  std::optional<int> SmallerTip(const std::vector<int>& candidates, int tip) const;
  std::optional<int> ParentOnSide(int commit, Side side) const;
  std::vector<int> Open() const;
  // What tells of the suspects that may still be the culprit.
  std::vector<int> AboutSuspects() const;
  // A suspect and its first parent, the good side first: it takes longer.
  std::vector<int> BothSides(int suspect) const;
  // The second runs of a sole suspect's sides, as long as it may be the culprit.
  std::vector<Trial> EarlyConfirmations() const;
  bool IsCandidate(int commit) const;
  Trial MakeTrial(int commit, int run) const {
    return {.commit = commit, .run = run, .runtime_of = setup_.runtime_of};
  }

  const CommitGraph& graph_;
  const BisectionSetup setup_;
  std::vector<int> steps_;  // back from the late end; empty when the early one is given
  std::map<Trial, Verdict> told_;
  std::set<Trial> in_flight_;

  // Made from the above by Update().
  Phase phase_ = Phase::kEnds;
  BisectionResult result_;
  std::map<int, const Verdict*> known_;  // content -> verdict
  std::vector<std::optional<Side>> sides_;
  std::string good_signature_;
  int tip_ = 0;              // the smallest commit known to be in the late end's state
  std::vector<Trial> asks_;  // what must be known next, in this order
};

}  // namespace bkm

#endif  // HARNESS_SEARCH_BISECTION_H_
