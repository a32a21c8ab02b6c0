// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/speed_diff.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

// With five equal cells, another cell of the same speed is further off than all of them, in this
// direction, one time in twelve; further than the square of that, far less often.
constexpr int kFewestEqual = 5;

bool HasSpeed(const CellRecord* cell) {
  return cell && cell->verdict && cell->verdict->kind == VerdictKind::kOk &&
         cell->cost.step_seconds > 0;
}

// A stored result that both runs took says nothing about the later run.
bool IsCompared(const CellPair& pair) {
  return HasSpeed(pair.before) && HasSpeed(pair.after) &&
         pair.before->measured != pair.after->measured;
}

bool IsEqual(const CellPair& pair) {
  const CellRecord &a = *pair.before, &b = *pair.after;
  return a.cell.engine_subject == b.cell.engine_subject &&
         a.cell.library_subject == b.cell.library_subject &&
         a.library_version == b.library_version && a.lock == b.lock;
}

double LogRatio(const CellPair& pair) {
  return std::log(pair.after->cost.step_seconds / pair.before->cost.step_seconds);
}

}  // namespace

bool SpeedDiff::knows_noise() const { return equal_cells >= kFewestEqual; }

SpeedDiff CompareSpeeds(std::span<const CellPair> pairs) {
  SpeedDiff diff;
  std::vector<double> equal;
  std::vector<const CellPair*> others;
  for (const CellPair& pair : pairs) {
    if (!IsCompared(pair)) continue;
    ++diff.compared;
    if (IsEqual(pair)) {
      equal.push_back(LogRatio(pair));
    } else {
      others.push_back(&pair);
    }
  }
  diff.equal_cells = static_cast<int>(equal.size());
  if (!diff.knows_noise()) return diff;
  std::sort(equal.begin(), equal.end());
  const double usual = equal[equal.size() / 2];
  const double noise = std::max(usual - equal.front(), equal.back() - usual);
  diff.usual = std::exp(usual);
  diff.noise = std::exp(noise);
  std::stable_sort(others.begin(), others.end(), [](const CellPair* a, const CellPair* b) {
    return LogRatio(*a) > LogRatio(*b);
  });
  for (const CellPair* pair : others) {
    if (LogRatio(*pair) - usual <= 2 * noise) break;
    diff.slower.push_back({pair->asked, CellLabel(*pair->after), pair->before->cost.step_seconds,
                           pair->after->cost.step_seconds});
  }
  return diff;
}

OrderedJson ToJson(const SpeedDiff& diff) {
  OrderedJson slower = OrderedJson::array();
  for (const Slowdown& one : diff.slower) {
    slower.push_back({{"asked", one.asked},
                      {"before_s", one.before},
                      {"after_s", one.after},
                      {"times", one.after / one.before}});
  }
  const bool knows = diff.knows_noise();
  return {{"compared", diff.compared},
          {"equal_cells", diff.equal_cells},
          {"usual", knows ? OrderedJson(diff.usual) : OrderedJson()},
          {"noise", knows ? OrderedJson(diff.noise) : OrderedJson()},
          {"slower", slower}};
}

std::vector<std::string> SpeedLines(const SpeedDiff& diff) {
  if (diff.compared == 0) return {};
  if (!diff.knows_noise()) {
    return {absl::StrCat("speed: not compared: ", diff.equal_cells,
                         " cells of the same versions were measured in both runs, and it takes ",
                         kFewestEqual, " to tell noise")};
  }
  std::vector<std::string> lines = {absl::StrFormat(
      "speed: a step of %d cells of the same versions takes %.2f times as long, and each of them "
      "at most %.2f times more or less; %d of %d other cells are slower than that explains",
      diff.equal_cells, diff.usual, diff.noise, diff.slower.size(),
      diff.compared - diff.equal_cells)};
  for (const Slowdown& one : diff.slower) {
    lines.push_back(absl::StrFormat("  slower: %s: %.2f s -> %.2f s a step (%.2f times)", one.label,
                                    one.before, one.after, one.after / one.before));
  }
  return lines;
}

}  // namespace bkm
