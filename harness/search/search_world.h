// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SEARCH_SEARCH_WORLD_H_
#define HARNESS_SEARCH_SEARCH_WORLD_H_

#include <deque>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "harness/base/check.h"
#include "harness/search/commit_graph.h"
#include "harness/search/trial.h"

namespace bkm {

inline Outcome Ok() { return {{.kind = VerdictKind::kOk, .stage = Stage::kGolden}, "lock"}; }
inline Outcome Broken(const std::string& reason = "missing-module") {
  return {{.kind = VerdictKind::kBroken, .stage = Stage::kImport, .reason = reason}, "lock"};
}
inline Outcome Wrong() {
  return {{.kind = VerdictKind::kWrong, .stage = Stage::kGolden, .reason = "log-probs-off"},
          "lock"};
}
inline Outcome Unjudgeable() {
  return {{.kind = VerdictKind::kSpurious, .stage = Stage::kImport, .reason = "killed"}, "lock"};
}

// A line of `count` commits, a day apart, each with content of its own.
inline std::vector<GraphCommit> Line(int count) {
  std::vector<GraphCommit> commits(count);
  for (int i = 0; i < count; ++i) {
    commits[i].content = absl::StrCat("c", i);
    commits[i].time = int64_t{86400} * i;
    if (i > 0) commits[i].parents = {i - 1};
  }
  return commits;
}

// Outcomes by one letter per commit: G ok, B broken, W wrong, s cannot be judged.
inline std::function<Outcome(const Trial&)> Letters(std::string letters) {
  return [letters](const Trial& trial) {
    const char letter = letters[trial.commit];
    return letter == 'G'   ? Ok()
           : letter == 'B' ? Broken()
           : letter == 'W' ? Wrong()
                           : Unjudgeable();
  };
}

// Runs a search: answers its trials, `slots` at a time, in the order of the requests or (with a
// seed) in random order.
class SearchWorld {
 public:
  explicit SearchWorld(std::function<Outcome(const Trial&)> answer, int slots = 1, int seed = 0)
      : answer_(std::move(answer)), slots_(slots), seed_(seed), random_(seed) {}

  void Run(HistorySearch& search) {
    std::deque<Trial> in_flight;
    for (int turn = 0; turn < 100000; ++turn) {
      const int room = slots_ - static_cast<int>(in_flight.size());
      for (const Trial& trial : search.Wanted(room)) {
        HARNESS_CHECK(static_cast<int>(in_flight.size()) < slots_) << "more than there is room for";
        HARNESS_CHECK(answers_.find(trial) == answers_.end()) << "asked twice";
        answers_[trial] = answer_(trial);
        asked.push_back(trial);
        in_flight.push_back(trial);
      }
      if (in_flight.empty()) {
        HARNESS_CHECK(search.done()) << "asks for nothing and is not done";
        return;
      }
      const size_t next = seed_ ? random_() % in_flight.size() : 0;
      const Trial trial = in_flight[next];
      in_flight.erase(in_flight.begin() + static_cast<std::ptrdiff_t>(next));
      search.Tell(trial, answers_[trial]);
    }
    HARNESS_CHECK(false) << "no end";
  }
  // Tells a search all stored outcomes, as after a crash.
  void Repeat(HistorySearch& search) const {
    for (const auto& [trial, outcome] : answers_) search.Tell(trial, outcome);
  }
  std::vector<int> AskedCommits() const {
    std::vector<int> commits;
    for (const Trial& trial : asked) commits.push_back(trial.commit);
    return commits;
  }

  std::vector<Trial> asked;

 private:
  std::function<Outcome(const Trial&)> answer_;
  int slots_;
  int seed_;
  std::mt19937 random_;
  std::map<Trial, Outcome> answers_;
};

}  // namespace bkm

#endif  // HARNESS_SEARCH_SEARCH_WORLD_H_
