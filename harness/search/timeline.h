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
  int every = 16;        // at first each so manieth commit is measured, and both ends
  int runtime_of = -1;   // whose runtime every trial asks for
  bool confirm = false;  // measure both sides of every boundary once more
};

// Neighbouring measured commits with one signature; those between are taken to have it too.
struct Stretch {
  int first = 0;  // commits
  int last = 0;
  int commits = 0;   // from first to last
  int measured = 0;  // of these, themselves or by an equal one
  std::string signature;
};

// Where one stretch ends and the next begins.
struct Boundary {
  int before = 0;                 // the last commit of the one
  int after = 0;                  // the first commit of the other
  std::vector<int> candidates;    // the culprit is one of these; exact: `after` alone
  std::optional<bool> confirmed;  // measured once more, both sides came to the same
};

struct TimelineResult {
  std::vector<Stretch> stretches;
  std::vector<Boundary> boundaries;  // one fewer, in order
  // A stretch of so many commits at most can hide between measured ones that are alike.
  int resolution = 0;
};

// Every boundary of a mainline, oldest first: signatures are compared, so a commit that makes a
// bad cell differently bad is one. A commit that cannot be judged belongs to no stretch.
class Timeline : public HistorySearch {
 public:
  Timeline(const CommitGraph& graph, TimelineSetup setup);

  std::vector<Trial> Wanted(int room) override;
  void Tell(const Trial& trial, const Outcome& outcome) override;
  bool done() const override { return done_; }
  // What is known so far; final once done.
  const TimelineResult& result() const { return result_; }
  // What a commit came to; null when it was not measured, nor an equal one.
  const Outcome* OutcomeOf(int commit) const;

 private:
  struct Gap {  // places in line_ that are judged, with none between, and differ
    int before, after;
  };

  void Update();
  std::vector<Trial> Needed() const;
  std::vector<Trial> Confirmations() const;
  // The place that cuts the widest part of `gap` that no trial in flight cuts; absent: all of it is
  // measured or being measured.
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

  // Made from the above by Update().
  bool done_ = false;
  std::map<int, const Outcome*> known_;  // by content
  std::vector<Gap> gaps_;
  TimelineResult result_;
};

}  // namespace bkm

#endif  // HARNESS_SEARCH_TIMELINE_H_
