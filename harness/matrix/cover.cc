// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/matrix/cover.h"

#include <algorithm>
#include <array>
#include <map>
#include <queue>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/base/check.h"

namespace bkm {
namespace {

// Counting combinations beyond this takes more time than the plan is worth.
constexpr int64_t kMostCounted = 20'000'000;
constexpr int kMostStrength = 3;
constexpr size_t kMostValues = kMostStrength + 1;

// Values by number; 0 where there are fewer.
using Combination = std::array<uint32_t, kMostValues>;
struct CombinationHash {
  size_t operator()(const Combination& values) const {
    uint64_t hash = 0;
    for (const uint32_t value : values) hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 32);
  }
};
using Seen = std::unordered_set<Combination, CombinationHash>;

// Rows as numbers: each value of each column has its own. Columns with one value tell nothing
// apart.
class NumberedRows {
 public:
  explicit NumberedRows(const ValueRows& rows) : rows_(rows.size()) {
    const size_t columns = rows.empty() ? 0 : rows.front().size();
    uint32_t next = 1;
    for (size_t column = 0; column < columns; ++column) {
      std::map<std::string, uint32_t> numbers;
      for (const std::vector<std::string>& row : rows) numbers.emplace(row[column], 0);
      if (numbers.size() == 1) continue;
      for (auto& [value, number] : numbers) number = next++;
      for (size_t i = 0; i < rows.size(); ++i) rows_[i].push_back(numbers.at(rows[i][column]));
    }
  }

  size_t size() const { return rows_.size(); }
  // How many combinations of `strength` values one row holds; of all its values if it has fewer.
  int64_t PerRow(int strength) const {
    const auto n = static_cast<int64_t>(columns());
    int64_t count = 1;
    for (int64_t i = 0; i < std::min<int64_t>(strength, n); ++i) count = count * (n - i) / (i + 1);
    return count;
  }

  // Calls `visit` with each combination of `strength` values of a row.
  template <typename Visit>
  void ForEach(size_t row, int strength, const Visit& visit) const {
    Combination chosen = {};
    Choose(rows_[row], 0, 0, std::min(static_cast<size_t>(strength), columns()), chosen, visit);
  }

 private:
  // Those in which values differ.
  size_t columns() const { return rows_.empty() ? 0 : rows_.front().size(); }

  template <typename Visit>
  static void Choose(const std::vector<uint32_t>& row, size_t from, size_t have, size_t want,
                     Combination& chosen, const Visit& visit) {
    if (have == want) return visit(chosen);
    for (size_t i = from; i + (want - have) <= row.size(); ++i) {
      chosen[have] = row[i];
      Choose(row, i + 1, have + 1, want, chosen, visit);
    }
  }

  std::vector<std::vector<uint32_t>> rows_;
};

int64_t Gain(const NumberedRows& rows, size_t row, int strength, const Seen& covered) {
  int64_t gain = 0;
  rows.ForEach(row, strength,
               [&](const auto& combination) { gain += !covered.contains(combination); });
  return gain;
}

int64_t Distinct(const NumberedRows& rows, const std::vector<size_t>& places, int strength) {
  Seen seen;
  for (const size_t place : places)
    rows.ForEach(place, strength, [&](const auto& combination) { seen.insert(combination); });
  return static_cast<int64_t>(seen.size());
}

std::vector<size_t> Choose(const NumberedRows& rows, int strength) {
  // The gain of a row only falls, so an outdated one is an upper bound.
  using Candidate = std::pair<int64_t, int64_t>;  // gain, and minus the place
  std::priority_queue<Candidate> candidates;
  for (size_t i = 0; i < rows.size(); ++i)
    candidates.emplace(rows.PerRow(strength), -static_cast<int64_t>(i));
  Seen covered;
  std::vector<size_t> chosen;
  while (!candidates.empty()) {
    const auto [bound, minus] = candidates.top();
    candidates.pop();
    const auto place = static_cast<size_t>(-minus);
    const int64_t gain = Gain(rows, place, strength, covered);
    if (gain == 0) continue;
    if (gain < bound) {
      candidates.emplace(gain, minus);
      continue;
    }
    chosen.push_back(place);
    rows.ForEach(place, strength, [&](const auto& combination) { covered.insert(combination); });
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<size_t> AllPlaces(size_t count) {
  std::vector<size_t> places(count);
  for (size_t i = 0; i < count; ++i) places[i] = i;
  return places;
}

// The fields of the cells, a column for each key that any of them has.
ValueRows FieldsOf(const std::vector<const PlannedCell*>& cells) {
  std::vector<std::map<std::string, std::string>> fields;
  std::map<std::string, size_t> columns;
  for (const PlannedCell* planned : cells) {
    auto& row = fields.emplace_back();
    for (const auto& [key, value] : CellFields(planned->cell)) {
      row[key] = value;
      columns.emplace(key, columns.size());
    }
  }
  ValueRows rows(cells.size(), std::vector<std::string>(columns.size()));
  for (size_t i = 0; i < fields.size(); ++i) {
    for (const auto& [key, value] : fields[i]) rows[i][columns.at(key)] = value;
  }
  return rows;
}

}  // namespace

std::vector<size_t> CoveringRows(const ValueRows& rows, int strength) {
  HARNESS_CHECK(strength >= 1 && strength <= kMostStrength);
  return Choose(NumberedRows(rows), strength);
}

Cover ApplyCover(int strength, std::vector<PlannedCell>& plan) {
  std::vector<const PlannedCell*> cells;
  std::vector<size_t> places;
  for (size_t i = 0; i < plan.size(); ++i) {
    if (!plan[i].included || plan[i].is_stopped()) continue;
    cells.push_back(&plan[i]);
    places.push_back(i);
  }
  const NumberedRows rows(FieldsOf(cells));
  const std::vector<size_t> kept = Choose(rows, strength);
  Cover cover{.strength = strength,
              .cells = static_cast<int64_t>(cells.size()),
              .kept = static_cast<int64_t>(kept.size()),
              .combinations = Distinct(rows, kept, strength)};
  if (cover.cells * rows.PerRow(strength + 1) <= kMostCounted) {
    cover.larger = Distinct(rows, AllPlaces(rows.size()), strength + 1);
    cover.larger_kept = Distinct(rows, kept, strength + 1);
  }
  for (const size_t row : AllPlaces(rows.size())) {
    if (std::binary_search(kept.begin(), kept.end(), row)) continue;
    PlannedCell& left_out = plan[places[row]];
    left_out.included = false;
    left_out.why =
        absl::StrCat("every combination of ", strength, strength == 1 ? " value" : " values",
                     " that it has is in a cell that is included (--cover ", strength, ")");
  }
  return cover;
}

std::string CoverText(const Cover& cover) {
  std::string text = absl::StrFormat(
      "--cover %d: %d of %d cells, %d saved; they hold all %d combinations of %d %s\n",
      cover.strength, cover.kept, cover.cells, cover.cells - cover.kept, cover.combinations,
      cover.strength, cover.strength == 1 ? "value" : "values");
  const int larger = cover.strength + 1;
  if (cover.larger > 0) {
    absl::StrAppendFormat(
        &text,
        "Unknown: a fault that only a combination of %d values shows may be missed; "
        "%d of %d of these are in no cell that is included\n",
        larger, cover.larger - cover.larger_kept, cover.larger);
  } else {
    absl::StrAppendFormat(
        &text, "Unknown: a fault that only a combination of %d values shows may be missed\n",
        larger);
  }
  return text;
}

OrderedJson CoverJson(const Cover& cover) {
  OrderedJson json = {{"strength", cover.strength},
                      {"cells", cover.cells},
                      {"included", cover.kept},
                      {"combinations", cover.combinations}};
  if (cover.larger > 0)
    json["larger"] = {{"combinations", cover.larger}, {"included", cover.larger_kept}};
  return json;
}

}  // namespace bkm
