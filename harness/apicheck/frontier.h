// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_FRONTIER_H_
#define HARNESS_APICHECK_FRONTIER_H_

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "harness/apicheck/api_check.h"

namespace bkm {

// A pair by its place in the plane: engine row, library column, both in the order of history.
struct PlanePoint {
  int row = 0;
  int column = 0;
  auto operator<=>(const PlanePoint&) const = default;
};

// What a run said of a pair.
enum class RunOutcome { kWorks, kFails, kSaysNothing };

// Neighbouring engines to whom all libraries answer alike by the sources, and neighbouring
// libraries that are not red for them: by the sources they may work.
struct Band {
  int first_row = 0;
  int last_row = 0;
  int first_column = 0;
  int last_column = 0;
  auto operator<=>(const Band&) const = default;
};

// Finds where working pairs begin and end, with as few runs as it takes: in each band the newest
// engine stands for all, and its libraries are halved between one that works and one that fails.
// Pure: knows nothing of runs, so that it goes on from stored outcomes alone.
class Frontier {
 public:
  explicit Frontier(const std::vector<std::vector<PairGrade>>& plane);

  void Tell(PlanePoint point, RunOutcome outcome) { outcomes_[point] = outcome; }
  // Pairs whose outcome decides a boundary now, at most `room`; none: all is decided.
  std::vector<PlanePoint> Wanted(int room) const;

  // The libraries of a band that work, by runs of its newest engine: from the oldest that does to
  // the newest that does, without one known to fail between them. More than one where it comes and
  // goes.
  struct Working {
    int first_column = 0;
    int last_column = 0;
    bool operator==(const Working&) const = default;
  };
  std::vector<Working> WorkingIn(const Band& band) const;

  const std::vector<Band>& bands() const { return bands_; }
  const std::map<PlanePoint, RunOutcome>& outcomes() const { return outcomes_; }

 private:
  // Of the band's newest engine, by column, without what says nothing.
  std::map<int, bool> Known(const Band& band) const;
  void WantedIn(const Band& band, std::vector<PlanePoint>& wanted) const;
  // `column`, or the next one towards `limit` that was not found to say nothing.
  std::optional<int> Usable(const Band& band, int column, int limit) const;

  std::vector<Band> bands_;
  std::map<PlanePoint, RunOutcome> outcomes_;
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_FRONTIER_H_
