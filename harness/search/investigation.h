// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SEARCH_INVESTIGATION_H_
#define HARNESS_SEARCH_INVESTIGATION_H_

#include <map>
#include <memory>
#include <optional>
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
  bool flaky = false;       // by Bayes from the start
  Side after = Side::kBad;  // flaky: the side that the late end was said to have
  std::optional<double> flake_rate;
  double confidence = 0.99;
};

// What changed a cell where a commit and its runtime change together. Written to bisect.json.
enum class MadeBy {
  kCommit,     // in one runtime the commit alone makes the difference
  kRuntime,    // with one commit the runtime alone makes it
  kBoth,       // only both together
  kEither,     // each alone is enough
  kUndecided,  // a crossing could not be judged
};
const char* Name(MadeBy made_by);

struct InvestigationResult {
  BisectionResult bisection;  // also where the search was a flaky one: ends, culprit, parents
  std::optional<FlakyResult> flaky;  // present: found, or not, by Bayes
  MadeBy made_by = MadeBy::kCommit;
  // Of both sides, where they differ: locks.
  std::string runtime_before, runtime_after;
};

// The whole of `bkm bisect` but for running cells: a bisection in the runtime of the late end;
// where that shows no difference, the same question of the runtimes themselves; where a
// confirmation contradicts, a flaky search; and where commit and runtime change together, both
// crossed.
class Investigation : public HistorySearch {
 public:
  Investigation(const CommitGraph& graph, InvestigationSetup setup);

  std::vector<Trial> Wanted(int room) override;
  void Tell(const Trial& trial, const Outcome& outcome) override;
  bool done() const override { return done_; }
  const InvestigationResult& result() const { return result_; }
  // "bisecting", "asking the runtimes", "flaky search", "crossing": what it does now, for people.
  const char* doing() const { return doing_; }
  // How many commits may still be the culprit.
  int candidates() const;
  Side Classify(const Verdict& verdict) const { return bisection_->Classify(verdict); }
  // What a trial came to; null when it was not told.
  const Outcome* Told(const Trial& trial) const;
  // What the first trial of a commit came to, in the runtime of the search.
  const Outcome* OutcomeOf(int commit) const;

 private:
  void Advance();
  void AskRuntimes();
  void StartFlaky();
  void Cross();
  void BisectIn(int runtime_of);
  // The side of a trial that is asked for unless it was told.
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
  std::vector<Trial> asked_;  // of these, the ones in flight
  const char* doing_ = "bisecting";
  bool done_ = false;
  InvestigationResult result_;
};

}  // namespace bkm

#endif  // HARNESS_SEARCH_INVESTIGATION_H_
