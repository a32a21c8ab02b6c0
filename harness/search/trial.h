// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SEARCH_TRIAL_H_
#define HARNESS_SEARCH_TRIAL_H_

#include <compare>
#include <string>
#include <vector>

#include "harness/model/verdict.h"

namespace bkm {

// One measurement that a search asks for.
struct Trial {
  int commit = 0;       // index in the search's CommitGraph
  int run = 1;          // from 2 on: a repeat of the same cell
  int runtime_of = -1;  // the commit whose runtime is used; -1: the commit's own
  // Use that runtime even if the declared pins of `commit` do not allow it. Without this flag, such
  // a commit runs in its own runtime.
  bool forced = false;
  auto operator<=>(const Trial&) const = default;
};

// The result of a measurement.
struct Outcome {
  Verdict verdict;
  std::string lock;  // the lock of the runtime that it ran in
};

// A search over a history, as a state machine without clock, files or randomness. Its state depends
// only on the outcomes that it was told, in any order. To resume an interrupted search, tell a new
// one the stored outcomes.
class HistorySearch {
 public:
  virtual ~HistorySearch() = default;
  // Up to `room` measurements, the most informative first. They count as in flight until they are
  // told. Returning none with nothing in flight means that the search is done.
  virtual std::vector<Trial> Wanted(int room) = 0;
  // Accepts outcomes of trials that the search did not ask for, too.
  virtual void Tell(const Trial& trial, const Outcome& outcome) = 0;
  virtual bool done() const = 0;
};

// Written to bisect.json: never rename.
enum class SearchStatus {
  kFound,      // one culprit, both sides of it confirmed
  kAmbiguous,  // one of several commits, because commits between could not be judged
  kNone,       // the ends do not differ, or one of them cannot be judged
  kUnstable,   // equal content was good and bad
};
inline const char* Name(SearchStatus status) {
  switch (status) {
    case SearchStatus::kFound:
      return "found";
    case SearchStatus::kAmbiguous:
      return "ambiguous";
    case SearchStatus::kNone:
      return "none";
    case SearchStatus::kUnstable:
      return "unstable";
  }
  return "";
}

}  // namespace bkm

#endif  // HARNESS_SEARCH_TRIAL_H_
