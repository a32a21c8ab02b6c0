// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_FRONTIER_H_
#define HARNESS_APICHECK_FRONTIER_H_

#include <map>
#include <optional>
#include <set>
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

// What is asked of a frontier, beside the boundaries.
struct FrontierQuestions {
  // Engines and libraries that people ask for, as releases: runs of their own.
  std::set<int> rows;
  std::set<int> columns;
  // How far apart may lie what ran and came to the same, without a run between them: libraries
  // with a band's newest engine, and engines; 0: any number.
  int resolution = 0;
};

// Finds where working pairs begin and end, with as few runs as it takes. In each band the newest
// engine's libraries are halved between one that works and one that fails. The oldest engine, some
// between, and those that people ask for then run at the ends of what was found; where one comes to
// another outcome it is searched as the newest was, and the engines between the two are halved.
// Pure: knows nothing of runs, so that it goes on from stored outcomes alone.
class Frontier {
 public:
  explicit Frontier(const std::vector<std::vector<PairGrade>>& plane,
                    FrontierQuestions questions = {});

  void Tell(PlanePoint point, RunOutcome outcome) { outcomes_[point.row][point.column] = outcome; }
  // Pairs whose outcome decides a boundary now, at most `room`; none: all is decided.
  std::vector<PlanePoint> Wanted(int room) const;

  // Libraries from the oldest that works to the newest that does, without one known to fail between
  // them.
  struct Working {
    int first_column = 0;
    int last_column = 0;
    bool operator==(const Working&) const = default;
  };
  // Neighbouring engines of a band that came to the same wherever they ran, and what works by the
  // newest of them: more than one stretch where it comes and goes.
  struct Area {
    int first_row = 0;
    int last_row = 0;
    std::vector<Working> working;
    bool operator==(const Area&) const = default;
  };
  // The newest first. An engine between two that differ is in none until it is known with which of
  // them it goes; one of which nothing is known goes with the next newer one.
  std::vector<Area> AreasOf(const Band& band) const;

  const std::vector<Band>& bands() const { return bands_; }

 private:
  using Row = std::map<int, RunOutcome>;  // by column
  // What a band's runs say so far, and what they leave open.
  struct Survey {
    std::vector<PlanePoint> wanted;
    std::vector<Area> areas;
  };

  // The outcomes of a row within a band, without those that say nothing; true: it works.
  std::map<int, bool> Known(const Band& band, int row) const;
  bool SaysNothing(int row, int column) const;
  // `column`, or the next one towards `limit` that was not found to say nothing; -1: there is none.
  int Usable(int row, int column, int limit) const;
  std::vector<Working> WorkingIn(const Band& band, int row) const;
  // Where the outcomes of a row change, and where they begin and end.
  std::set<int> Decisive(const Band& band, int row) const;
  // The columns where a row came to another outcome than `other` did, or did at both sides.
  std::set<int> Differences(const Band& band, int row, int other) const;

  // The newest engine of an area that ran and came to another outcome than the area's newest.
  std::optional<int> NewestContradiction(const Band& band, const Area& area) const;

  // Of a band, those that run whatever the others come to.
  std::set<int> RowsToRun(const Band& band) const;
  Survey SurveyOf(const Band& band) const;
  // By the band's newest engine and these.
  Survey SurveyBy(const Band& band, const std::set<int>& rows) const;
  // Appends what it takes to know one row's boundaries; true: they are known.
  bool Search(const Band& band, int row, std::vector<PlanePoint>& wanted) const;
  // Appends what it takes to know which of the engines from `row` up to `newer`, whose boundaries
  // are known, are alike: by these columns and those that decide of `newer`. True: it is known.
  bool Compare(const Band& band, int row, int newer, std::set<int> columns, Survey& survey) const;
  // Between the two, near the middle, one that could be compared by these columns; `row`: there is
  // none.
  int Middle(int row, int newer, const std::set<int>& columns) const;

  const FrontierQuestions questions_;
  std::vector<Band> bands_;
  std::map<int, Row> outcomes_;  // by row
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_FRONTIER_H_
