// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SEARCH_INVESTIGATION_H_
#define HARNESS_SEARCH_INVESTIGATION_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/search/bisection.h"
#include "harness/search/flaky_search.h"

namespace bkm {

struct InvestigationSetup {
  int late = 0;
  std::optional<int> early;
  std::vector<int> steps = {};     // BisectionSetup::steps
  std::vector<int> suspects = {};  // BisectionSetup::suspects
  Criterion criterion = {};
  bool flaky = false;       // start with a flaky search
  Side after = Side::kBad;  // for a flaky search: the side that the user gave the late end
  std::optional<double> flake_rate;
  double confidence = 0.99;
};

// The cause of a change when a commit and its runtime change together. Written to bisect.json:
// never rename.
enum class MadeBy {
  kCommit,     // the commit alone
  kRuntime,    // the runtime alone
  kBoth,       // only both together
  kEither,     // each alone is enough
  kUndecided,  // a crossed trial could not be judged
};
const char* Name(MadeBy made_by);

inline constexpr double kAssumedFlakeRate = 0.05;

struct InvestigationResult {
  BisectionResult bisection;         // a flaky search fills in ends, culprit and parents too
  std::optional<FlakyResult> flaky;  // present after a flaky search
  // Of a culprit that is named: the probability that it is the culprit. A bisection assumes that up
  // to kAssumedFlakeRate of all runs end on the wrong side.
  std::optional<double> confidence;
  MadeBy made_by = MadeBy::kCommit;
  // The locks of both sides, if they differ.
  std::string runtime_before, runtime_after;
};

// `bkm bisect` without running cells. Bisects in the runtime of the late end. If the ends do not
// differ there, compares the runtimes themselves. If a confirmation contradicts, starts a flaky
// search. If commit and runtime change together, crosses them.
class Investigation : public HistorySearch {
 public:
  Investigation(const CommitGraph& graph, InvestigationSetup setup);

  std::vector<Trial> Wanted(int room) override;
  void Tell(const Trial& trial, const Outcome& outcome) override;
  bool done() const override { return done_; }
  const InvestigationResult& result() const { return result_; }
  // The current activity, for people: "bisecting", "flaky search", ...
  const char* doing() const { return doing_; }
  // How many commits may still be the culprit.
  int candidates() const;
  Side Classify(const Verdict& verdict) const { return bisection_->Classify(verdict); }
  // The outcome of a trial; null if it was not told.
  const Outcome* Told(const Trial& trial) const;
  // The outcome of a commit, or of equal content, in the runtime of the search; null without one.
  const Outcome* OutcomeOf(int commit) const;

 private:
  std::vector<Trial> WantedBySearch(int room);
  void Advance();
  void AskRuntimes();
  void StartFlaky();
  double ConfidenceOf(const BisectionResult& found) const;
  void Cross();
  void BisectIn(int runtime_of);
  // The side of a trial; asks for the trial if it was not told.
  std::optional<Side> Ask(const Trial& trial);
  // The commit whose own runtime `commit` was measured in.
  int RuntimeOwner(int commit) const;

  const CommitGraph& graph_;
  const InvestigationSetup setup_;
  std::map<Trial, Outcome> told_;
  std::unique_ptr<Bisection> bisection_;
  std::unique_ptr<FlakySearch> flaky_;
  bool runtimes_asked_ = false;
  std::vector<Trial> asks_;
  std::set<Trial> in_flight_;
  const char* doing_ = "bisecting";
  bool done_ = false;
  InvestigationResult result_;
};

}  // namespace bkm

#endif  // HARNESS_SEARCH_INVESTIGATION_H_
