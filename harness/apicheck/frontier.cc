// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/frontier.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace bkm {
namespace {

// The search for a first working pair cuts a band into at most this many parts.
constexpr int kMostParts = 8;

// The outcome of a column, or of both its known neighbours if they agree.
std::optional<bool> Expected(const std::map<int, bool>& known, int column) {
  const auto after = known.lower_bound(column);
  if (after == known.end()) return std::nullopt;
  if (after->first == column) return after->second;
  if (after == known.begin() || std::prev(after)->second != after->second) return std::nullopt;
  return after->second;
}

}  // namespace

Frontier::Frontier(const std::vector<std::vector<PairGrade>>& plane, FrontierQuestions questions)
    : questions_(std::move(questions)) {
  for (size_t first = 0; first < plane.size();) {
    size_t next = first + 1;
    while (next < plane.size() && plane[next] == plane[first]) ++next;
    const std::vector<PairGrade>& row = plane[first];
    for (size_t column = 0; column < row.size(); ++column) {
      if (IsRed(row[column]) || row[column] == PairGrade::kUnknown) continue;
      size_t end = column;
      while (end + 1 < row.size() && !IsRed(row[end + 1]) && row[end + 1] != PairGrade::kUnknown) {
        ++end;
      }
      bands_.push_back({static_cast<int>(first), static_cast<int>(next) - 1,
                        static_cast<int>(column), static_cast<int>(end)});
      column = end;
    }
    first = next;
  }
}

std::map<int, bool> Frontier::Known(const Band& band, int row) const {
  std::map<int, bool> known;
  const auto found = outcomes_.find(row);
  if (found == outcomes_.end()) return known;
  for (auto it = found->second.lower_bound(band.first_column);
       it != found->second.end() && it->first <= band.last_column; ++it) {
    if (it->second != RunOutcome::kSaysNothing) known[it->first] = it->second == RunOutcome::kWorks;
  }
  return known;
}

bool Frontier::SaysNothing(int row, int column) const {
  const auto found = outcomes_.find(row);
  if (found == outcomes_.end()) return false;
  const auto outcome = found->second.find(column);
  return outcome != found->second.end() && outcome->second == RunOutcome::kSaysNothing;
}

int Frontier::Usable(int row, int column, int limit) const {
  const int step = column <= limit ? 1 : -1;
  for (; SaysNothing(row, column); column += step) {
    if (column == limit) return -1;
  }
  return column;
}

std::vector<Frontier::Working> Frontier::WorkingIn(const Band& band, int row) const {
  std::vector<Working> working;
  bool open = false;
  for (const auto& [column, works] : Known(band, row)) {
    if (works && !open) working.push_back({column, column});
    if (works) working.back().last_column = column;
    open = works;
  }
  return working;
}

std::set<int> Frontier::Decisive(const Band& band, int row) const {
  const std::map<int, bool> known = Known(band, row);
  std::set<int> decisive;
  for (auto it = known.begin(); it != known.end(); ++it) {
    const bool begins = it == known.begin() || std::prev(it)->second != it->second;
    const bool ends = std::next(it) == known.end() || std::next(it)->second != it->second;
    if (begins || ends) decisive.insert(it->first);
  }
  return decisive;
}

std::set<int> Frontier::Differences(const Band& band, int row, int other) const {
  const std::map<int, bool> others = Known(band, other);
  std::set<int> columns;
  for (const auto& [column, works] : Known(band, row)) {
    if (Expected(others, column).value_or(works) != works) columns.insert(column);
  }
  return columns;
}

bool Frontier::Search(const Band& band, int row, std::vector<PlanePoint>& wanted) const {
  const std::map<int, bool> known = Known(band, row);
  const size_t before = wanted.size();
  const auto want = [&](int column) {
    const bool fresh = column >= 0 && !known.contains(column);
    if (fresh) wanted.push_back({row, column});
    return fresh;
  };
  want(Usable(row, band.first_column, band.last_column));
  want(Usable(row, band.last_column, band.first_column));
  for (const int column : questions_.columns) {
    const bool inside = band.first_column < column && column < band.last_column;
    if (inside && !SaysNothing(row, column)) want(column);
  }
  if (wanted.size() > before) return false;
  const bool any_works =
      std::any_of(known.begin(), known.end(), [](const auto& each) { return each.second; });
  const int width = band.last_column - band.first_column;
  for (int parts = 2; !any_works && parts <= std::min(kMostParts, width); parts *= 2) {
    for (int part = 1; part < parts; part += 2)
      want(Usable(row, band.first_column + width * part / parts, band.last_column));
    if (wanted.size() > before) return false;
  }
  // Boundaries of another engine of the band are likely to be this one's too.
  std::set<int> hints;
  for (auto it = outcomes_.lower_bound(band.first_row);
       it != outcomes_.end() && it->first <= band.last_row; ++it) {
    hints.merge(Decisive(band, it->first));
  }
  for (auto it = known.begin(); it != known.end() && std::next(it) != known.end(); ++it) {
    const auto after = std::next(it);
    const int apart = after->first - it->first;
    const bool halve = it->second != after->second
                           ? apart > 1
                           : questions_.resolution > 0 && apart > questions_.resolution;
    if (!halve) continue;
    bool hinted = false;
    for (auto hint = hints.upper_bound(it->first); hint != hints.end() && *hint < after->first;
         ++hint) {
      hinted |= !SaysNothing(row, *hint) && want(*hint);
    }
    if (hinted) continue;
    const int middle = it->first + apart / 2;
    const int up = Usable(row, middle, after->first);
    if (want(up) || up < after->first) continue;
    want(Usable(row, middle, it->first));
  }
  return wanted.size() == before;
}

bool Frontier::Compare(const Band& band, int row, int newer, std::set<int> columns,
                       Survey& survey) const {
  columns.merge(Decisive(band, newer));
  const std::map<int, bool> known = Known(band, row);
  const std::map<int, bool> newer_known = Known(band, newer);
  const std::set<int> differences = Differences(band, row, newer);
  if (differences.empty()) {
    const size_t before = survey.wanted.size();
    for (const int column : columns) {
      if (!known.contains(column) && !SaysNothing(row, column))
        survey.wanted.push_back({row, column});
    }
    survey.areas.back().first_row = row;
    return survey.wanted.size() == before;
  }
  // A difference from an outcome that is only expected of the newer engine must be measured.
  std::vector<PlanePoint> expected;
  for (const int column : differences) {
    if (!newer_known.contains(column) && !SaysNothing(newer, column))
      expected.push_back({newer, column});
  }
  const bool seen = std::any_of(differences.begin(), differences.end(),
                                [&](int column) { return newer_known.contains(column); });
  if (!seen && !expected.empty()) {
    survey.wanted.insert(survey.wanted.end(), expected.begin(), expected.end());
    return false;
  }
  const Area own{row, row, WorkingIn(band, row)};
  const bool searched = Search(band, row, survey.wanted);
  if (searched) {
    const std::set<int> own_decisive = Decisive(band, row);
    std::set_intersection(differences.begin(), differences.end(), own_decisive.begin(),
                          own_decisive.end(), std::inserter(columns, columns.end()));
    const int middle = Middle(row, newer, columns);
    if (middle > row) {
      if (Compare(band, middle, newer, columns, survey))
        return Compare(band, row, middle, columns, survey);
      survey.areas.push_back(own);
      return false;
    }
  }
  survey.areas.push_back(own);
  return searched;
}

int Frontier::Middle(int row, int newer, const std::set<int>& columns) const {
  const auto usable = [&](int middle) {
    return row < middle && middle < newer &&
           std::none_of(columns.begin(), columns.end(),
                        [&](int column) { return SaysNothing(middle, column); });
  };
  const int middle = row + (newer - row) / 2;
  for (int away = 0; away < newer - row; ++away) {
    if (usable(middle + away)) return middle + away;
    if (usable(middle - away)) return middle - away;
  }
  return row;
}

std::optional<int> Frontier::NewestContradiction(const Band& band, const Area& area) const {
  for (int row = area.last_row - 1; row >= area.first_row; --row) {
    if (outcomes_.contains(row) && !Differences(band, row, area.last_row).empty()) return row;
  }
  return std::nullopt;
}

Frontier::Survey Frontier::SurveyBy(const Band& band, const std::set<int>& rows) const {
  Survey survey;
  survey.areas.push_back({band.last_row, band.last_row, WorkingIn(band, band.last_row)});
  bool decided = Search(band, band.last_row, survey.wanted);
  int newer = band.last_row;
  for (auto row = rows.rbegin(); decided && row != rows.rend(); newer = *row++) {
    std::set<int> columns;
    if (questions_.rows.contains(*row)) {
      for (const int column : questions_.columns) {
        if (band.first_column <= column && column <= band.last_column) columns.insert(column);
      }
    }
    decided = Compare(band, *row, newer, columns, survey);
  }
  if (decided) return survey;
  Area& last = survey.areas.back();
  last.first_row = band.first_row;
  const std::optional<int> contradiction = NewestContradiction(band, last);
  if (contradiction) last.first_row = *contradiction + 1;
  return survey;
}

std::set<int> Frontier::RowsToRun(const Band& band) const {
  std::set<int> rows = {band.first_row, band.last_row};
  for (const int row : questions_.rows) {
    if (band.first_row < row && row < band.last_row) rows.insert(row);
  }
  if (questions_.resolution == 0) return rows;
  for (auto row = rows.begin(); std::next(row) != rows.end();) {
    const int apart = *std::next(row) - *row;
    const int steps = (apart + questions_.resolution - 1) / questions_.resolution;
    row = steps > 1 ? rows.insert(*row + apart / steps).first : std::next(row);
  }
  return rows;
}

Frontier::Survey Frontier::SurveyOf(const Band& band) const {
  std::set<int> rows = RowsToRun(band);
  rows.erase(band.last_row);
  for (;;) {
    const Survey survey = SurveyBy(band, rows);
    if (!survey.wanted.empty()) return survey;
    // Stored runs of other engines may contradict an area.
    std::optional<int> odd;
    for (const Area& area : survey.areas) {
      if (!odd) odd = NewestContradiction(band, area);
    }
    if (!odd || !rows.insert(*odd).second) return survey;
  }
}

std::vector<PlanePoint> Frontier::Wanted(int room) const {
  std::vector<PlanePoint> wanted;
  for (const Band& band : bands_) {
    const Survey survey = SurveyOf(band);
    wanted.insert(wanted.end(), survey.wanted.begin(), survey.wanted.end());
  }
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  if (static_cast<int>(wanted.size()) > room) wanted.resize(std::max(0, room));
  return wanted;
}

std::vector<Frontier::Area> Frontier::AreasOf(const Band& band) const {
  return SurveyOf(band).areas;
}

}  // namespace bkm
