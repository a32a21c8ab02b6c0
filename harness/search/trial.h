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
  int run = 1;          // 2 and more: the same cell measured once more
  int runtime_of = -1;  // the commit whose runtime is to be used; -1: the commit's own
  // In that runtime also where the declared pins of `commit` do not allow it. Otherwise such a
  // commit is measured in its own.
  bool forced = false;
  auto operator<=>(const Trial&) const = default;
};

// What a measurement came to.
struct Outcome {
  Verdict verdict;
  std::string lock;  // of the runtime that it ran in
};

// A search over a history, as a state machine: no clock, no files, no chance. It is what it was
// told, in whatever order, so that a search that was cut short goes on once it is told again.
class HistorySearch {
 public:
  virtual ~HistorySearch() = default;
  // Up to `room` measurements, the most telling first. They count as in flight until they are
  // told. None, with nothing in flight: the search is done.
  virtual std::vector<Trial> Wanted(int room) = 0;
  // Also takes what was not asked for.
  virtual void Tell(const Trial& trial, const Outcome& outcome) = 0;
  virtual bool done() const = 0;
};

// Written to bisect.json: never rename.
enum class SearchStatus {
  kFound,      // one culprit, both sides of it confirmed
  kAmbiguous,  // one of several commits: those between could not be judged
  kNone,       // the ends do not differ, or one of them cannot be judged
  kUnstable,   // a commit was good and bad in turn
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
