// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/frontier.h"

#include <algorithm>

namespace bkm {
namespace {

// Into how many parts a band is cut at most in search of a first pair that works.
constexpr int kMostParts = 8;

}  // namespace

Frontier::Frontier(const std::vector<std::vector<PairGrade>>& plane) {
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

std::map<int, bool> Frontier::Known(const Band& band) const {
  std::map<int, bool> known;
  for (auto it = outcomes_.lower_bound({band.last_row, band.first_column});
       it != outcomes_.end() && it->first <= PlanePoint{band.last_row, band.last_column}; ++it) {
    if (it->second != RunOutcome::kSaysNothing) {
      known[it->first.column] = it->second == RunOutcome::kWorks;
    }
  }
  return known;
}

std::optional<int> Frontier::Usable(const Band& band, int column, int limit) const {
  const int step = column <= limit ? 1 : -1;
  for (;; column += step) {
    const auto found = outcomes_.find({band.last_row, column});
    if (found == outcomes_.end() || found->second != RunOutcome::kSaysNothing) return column;
    if (column == limit) return std::nullopt;
  }
}

void Frontier::WantedIn(const Band& band, std::vector<PlanePoint>& wanted) const {
  const std::map<int, bool> known = Known(band);
  const auto want = [&](std::optional<int> column) {
    const bool fresh = column && !known.contains(*column);
    if (fresh) wanted.push_back({band.last_row, *column});
    return fresh;
  };
  // Both ends first.
  const bool first = want(Usable(band, band.first_column, band.last_column));
  const bool last = want(Usable(band, band.last_column, band.first_column));
  if (first || last) return;
  const bool any_works =
      std::any_of(known.begin(), known.end(), [](const auto& each) { return each.second; });
  const int width = band.last_column - band.first_column;
  for (int parts = 2; !any_works && parts <= std::min(kMostParts, width); parts *= 2) {
    bool more = false;
    for (int part = 1; part < parts; part += 2) {
      const int column = band.first_column + width * part / parts;
      more = want(Usable(band, column, band.last_column)) || more;
    }
    if (more) return;
  }
  // Halve between neighbours that differ.
  for (auto it = known.begin(); it != known.end() && std::next(it) != known.end(); ++it) {
    const auto after = std::next(it);
    if (it->second == after->second || after->first - it->first < 2) continue;
    const int middle = (it->first + after->first) / 2;
    const std::optional<int> up = Usable(band, middle, after->first);
    if (want(up) || (up && *up < after->first)) continue;
    want(Usable(band, middle, it->first));
  }
}

std::vector<PlanePoint> Frontier::Wanted(int room) const {
  std::vector<PlanePoint> wanted;
  for (const Band& band : bands_) WantedIn(band, wanted);
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  if (static_cast<int>(wanted.size()) > room) wanted.resize(std::max(0, room));
  return wanted;
}

std::vector<Frontier::Working> Frontier::WorkingIn(const Band& band) const {
  std::vector<Working> working;
  bool open = false;
  for (const auto& [column, works] : Known(band)) {
    if (!works) {
      open = false;
    } else if (open) {
      working.back().last_column = column;
    } else {
      working.push_back({column, column});
      open = true;
    }
  }
  return working;
}

}  // namespace bkm
