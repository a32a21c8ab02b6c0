// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SEARCH_TIMELINE_H_
#define HARNESS_SEARCH_TIMELINE_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/search/commit_graph.h"
#include "harness/search/trial.h"

namespace bkm {

struct TimelineSetup {
  int late = 0;          // its mainline is the history
  int every = 16;        // first measure both ends and every n-th commit
  int runtime_of = -1;   // the commit whose runtime every trial uses
  bool confirm = false;  // measure both sides of every boundary again
};

// Neighbouring measured commits with one signature. Commits between them are assumed to have it
// too.
struct Stretch {
  int first = 0;  // commits
  int last = 0;
  int commits = 0;   // from first to last
  int measured = 0;  // of these, the commits with an outcome, their own or of equal content
  std::string signature;
};

// Where one stretch ends and the next begins.
struct Boundary {
  int before = 0;                 // the last commit of the older stretch
  int after = 0;                  // the first commit of the newer stretch
  std::vector<int> candidates;    // one of these is the culprit; only `after` if it is exact
  std::optional<bool> confirmed;  // whether both sides had the same outcome when measured again
};

struct TimelineResult {
  std::vector<Stretch> stretches;
  std::vector<Boundary> boundaries;  // between the stretches, in order
  // The longest stretch, in commits, that can hide between measured commits that are alike.
  int resolution = 0;
};

// Finds every boundary of a mainline, oldest first. It compares signatures, so a commit that makes
// a bad cell bad in another way is a boundary. A commit that cannot be judged belongs to no
// stretch.
class Timeline : public HistorySearch {
 public:
  Timeline(const CommitGraph& graph, TimelineSetup setup);

  std::vector<Trial> Wanted(int room) override;
  void Tell(const Trial& trial, const Outcome& outcome) override;
  bool done() const override { return done_; }
  // The result so far; final once done.
  const TimelineResult& result() const { return result_; }
  // The outcome of a commit or of equal content; null without one.
  const Outcome* OutcomeOf(int commit) const;

 private:
  struct Gap {  // neighbouring judged places in line_ that differ
    int before, after;
  };

  void Update();
  std::vector<Trial> Needed() const;
  std::vector<Trial> Confirmations() const;
  // The place that cuts the widest part of `gap` between trials in flight; absent if nothing in it
  // is left to measure.
  std::optional<int> Cut(const Gap& gap, const std::set<int>& busy, int* width) const;
  bool IsJudged(int place) const;
  std::string SignatureAt(int place) const;
  bool IsBusy(int place) const;
  Trial MakeTrial(int place, int run) const {
    return {.commit = line_[place], .run = run, .runtime_of = setup_.runtime_of};
  }

  const CommitGraph& graph_;
  const TimelineSetup setup_;
  std::vector<int> line_;  // commits, oldest first
  std::map<Trial, Outcome> told_;
  std::set<Trial> in_flight_;

  // Derived from the members above by Update().
  bool done_ = false;
  std::map<int, const Outcome*> known_;  // by content
  std::vector<Gap> gaps_;
  TimelineResult result_;
};

}  // namespace bkm

#endif  // HARNESS_SEARCH_TIMELINE_H_
