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

// A pair: engine row and library column of the plane, both in the order of history.
struct PlanePoint {
  int row = 0;
  int column = 0;
  auto operator<=>(const PlanePoint&) const = default;
};

// The outcome of a pair's run.
enum class RunOutcome { kWorks, kFails, kSaysNothing };

// Neighbouring engines with equal grades for every library, and neighbouring libraries that are not
// red for them: the sources do not rule these pairs out.
struct Band {
  int first_row = 0;
  int last_row = 0;
  int first_column = 0;
  int last_column = 0;
  auto operator<=>(const Band&) const = default;
};

// What a frontier must find besides boundaries.
struct FrontierQuestions {
  // Engines and libraries that always run, such as releases.
  std::set<int> rows;
  std::set<int> columns;
  // How far apart two runs with the same outcome may lie without a run between them: libraries of a
  // band's newest engine, and engines. 0: any distance.
  int resolution = 0;
};

// Finds where working pairs begin and end, with few runs. In each band, the newest engine's
// libraries are halved between one that works and one that fails. The oldest engine, some between,
// and those of FrontierQuestions then run at the boundaries. An engine with another outcome is
// searched like the newest, and the engines between the two are halved. Does no I/O, so it resumes
// from stored outcomes alone.
class Frontier {
 public:
  explicit Frontier(const std::vector<std::vector<PairGrade>>& plane,
                    FrontierQuestions questions = {});

  void Tell(PlanePoint point, RunOutcome outcome) { outcomes_[point.row][point.column] = outcome; }
  // At most `room` pairs whose outcomes decide a boundary; empty once all boundaries are decided.
  std::vector<PlanePoint> Wanted(int room) const;

  // From the oldest library that works to the newest, with none between them known to fail.
  struct Working {
    int first_column = 0;
    int last_column = 0;
    bool operator==(const Working&) const = default;
  };
  // Neighbouring engines of a band with equal outcomes wherever they ran, and what works with the
  // newest of them: several stretches if it works, fails and works again.
  struct Area {
    int first_row = 0;
    int last_row = 0;
    std::vector<Working> working;
    bool operator==(const Area&) const = default;
  };
  // The newest first. An engine between two that differ is in no area until it is known which of
  // them it matches; an engine without outcomes joins the next newer one.
  std::vector<Area> AreasOf(const Band& band) const;

  const std::vector<Band>& bands() const { return bands_; }

 private:
  using Row = std::map<int, RunOutcome>;  // by column
  // The areas of a band so far, and the runs that are still missing.
  struct Survey {
    std::vector<PlanePoint> wanted;
    std::vector<Area> areas;
  };

  // Whether each judged column of a row works, within a band.
  std::map<int, bool> Known(const Band& band, int row) const;
  bool SaysNothing(int row, int column) const;
  // `column`, or else the next one towards `limit` whose run does not say nothing; -1: none.
  int Usable(int row, int column, int limit) const;
  std::vector<Working> WorkingIn(const Band& band, int row) const;
  // The first and last known columns of a row, and those on both sides of each change.
  std::set<int> Decisive(const Band& band, int row) const;
  // The columns where a row differs from `other`, or from both known neighbours in `other`.
  std::set<int> Differences(const Band& band, int row, int other) const;

  // The newest engine of an area that differs from the area's newest engine.
  std::optional<int> NewestContradiction(const Band& band, const Area& area) const;

  // The rows of a band that run whatever the outcomes of the others are.
  std::set<int> RowsToRun(const Band& band) const;
  Survey SurveyOf(const Band& band) const;
  // Compares only the band's newest engine and these rows.
  Survey SurveyBy(const Band& band, const std::set<int>& rows) const;
  // Appends the runs that one row's boundaries need. True: the boundaries are known.
  bool Search(const Band& band, int row, std::vector<PlanePoint>& wanted) const;
  // Appends the runs that tell which engines from `row` up to `newer` are alike, by these columns
  // and the decisive ones of `newer`, whose boundaries are known. True: it is known.
  bool Compare(const Band& band, int row, int newer, std::set<int> columns, Survey& survey) const;
  // An engine near the middle between the two that can be judged at these columns; `row` if there
  // is none.
  int Middle(int row, int newer, const std::set<int>& columns) const;

  const FrontierQuestions questions_;
  std::vector<Band> bands_;
  std::map<int, Row> outcomes_;  // by row
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_FRONTIER_H_
