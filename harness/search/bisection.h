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
  int late = 0;              // the newer end
  std::optional<int> early;  // the older end, an ancestor of `late`; absent: found by stepping back
  // Ancestors of `late` for stepping back, newest first; empty: commits 1, 2, 4, ... days older.
  std::vector<int> steps = {};
  // Commits to measure before other candidates, each with its first parent, and before the early
  // end: once a commit after the early end is on the other side than the late end, the early end
  // need not be measured. A sole suspect is confirmed while its first trials still run. Suspects
  // only set the order; each wrong one costs two trials.
  std::vector<int> suspects = {};
  int runtime_of = -1;  // the commit whose runtime every trial uses
  Criterion criterion;
};

struct BisectionResult {
  SearchStatus status = SearchStatus::kNone;
  int culprit = -1;             // if found: the first commit in the state of the late end
  std::vector<int> parents;     // if found: the culprit's, each in the state of the early end
  std::vector<int> candidates;  // one of these is the culprit
  std::optional<int> early;     // as given or found
  int late = 0;
  Side before = Side::kNeither;  // the early end's side
  Side after = Side::kNeither;   // the late end's; kBad: the culprit broke it, kGood: it fixed it
  std::string why;               // one sentence for people if nothing was found
};

// Finds a commit that is on one side of the criterion while all its parents are on the other.
// Counts ancestors as git bisect does, with several trials in flight. If a history is good and bad
// in turn, the result is one of the boundaries. Commits with equal content share an outcome.
class Bisection : public HistorySearch {
 public:
  Bisection(const CommitGraph& graph, BisectionSetup setup);

  std::vector<Trial> Wanted(int room) override;
  void Tell(const Trial& trial, const Outcome& outcome) override;
  bool done() const override { return phase_ == Phase::kDone; }
  // The result so far; final once done.
  const BisectionResult& result() const { return result_; }
  // The side of a commit, by its own outcome or that of equal content.
  std::optional<Side> SideOf(int commit) const { return sides_[commit]; }
  // The side of a verdict, given the good end's signature as far as it is known.
  Side Classify(const Verdict& verdict) const;
  const std::string& good_signature() const { return good_signature_; }
  const BisectionSetup& setup() const { return setup_; }

 private:
  enum class Phase { kEnds, kSplitting, kConfirming, kDone };

  void Update();
  // Whether both ends are known and differ.
  bool FindEnds();
  bool FindEarly(Side late);
  bool CompareEnds();
  // Whether the suspects may make the early end's outcome unnecessary.
  bool EarlyMayWait() const;
  // Whether a commit after the early end is on the other side than the late end, and so replaces
  // it.
  bool FindEarlySubstitute(Side late);
  // Assumes that the given ends differ until both are known, so that no slot idles.
  void Presume();
  void ClassifyAll();
  // Sets the tip and candidates to the smallest set that the known outcomes allow.
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
  // Open commits whose outcomes decide about suspects that may still be the culprit.
  std::vector<int> AboutSuspects() const;
  // A suspect and its first parent, the good side first, because it takes longer.
  std::vector<int> BothSides(int suspect) const;
  // The second runs of both sides of a sole suspect that may still be the culprit.
  std::vector<Trial> EarlyConfirmations() const;
  bool IsCandidate(int commit) const;
  Trial MakeTrial(int commit, int run) const {
    return {.commit = commit, .run = run, .runtime_of = setup_.runtime_of};
  }

  const CommitGraph& graph_;
  const BisectionSetup setup_;
  std::vector<int> steps_;  // back from the late end; empty if the early end is given
  std::map<Trial, Verdict> told_;
  std::set<Trial> in_flight_;

  // Derived from the members above by Update().
  Phase phase_ = Phase::kEnds;
  BisectionResult result_;
  std::map<int, const Verdict*> known_;  // content -> verdict
  std::vector<std::optional<Side>> sides_;
  std::string good_signature_;
  int tip_ = 0;              // the smallest commit known to be in the late end's state
  std::vector<Trial> asks_;  // trials that are needed next, in this order
};

}  // namespace bkm

#endif  // HARNESS_SEARCH_BISECTION_H_
