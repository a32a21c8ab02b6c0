// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/repeats.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

// Orders verdicts by the harm of relying on such a cell: a silent fault is the worst.
int Badness(VerdictKind kind) {
  constexpr std::array<VerdictKind, 7> kFromBest = {
      VerdictKind::kSkipped, VerdictKind::kSpurious, VerdictKind::kOk,   VerdictKind::kUnsupported,
      VerdictKind::kRefused, VerdictKind::kBroken,   VerdictKind::kWrong};
  return static_cast<int>(std::find(kFromBest.begin(), kFromBest.end(), kind) - kFromBest.begin());
}

bool IsNoAccident(const std::optional<Verdict>& verdict) {
  return verdict && verdict->kind != VerdictKind::kSpurious;
}

}  // namespace

std::vector<PreparedCell> WithRepeats(std::vector<PreparedCell> cells, int runs) {
  const size_t asked = cells.size();
  for (int repeat = 2; repeat <= runs; ++repeat) {
    for (size_t i = 0; i < asked; ++i) {
      if (cells[i].stopped) continue;
      PreparedCell again = cells[i];
      Cell& what = again.record.cell;
      what.repeat = repeat;
      again.record.repeat_of = cells[i].record.id;
      again.record.role = CellRole::kRepeat;
      again.record.id = CellId(what);
      again.record.dir = CellDirectory(what, again.record.id);
      cells.push_back(std::move(again));
    }
  }
  return cells;
}

absl::StatusOr<std::vector<CellSupply::Ready>> RepeatedCells::Take() {
  ASSIGN_OR_RETURN(std::vector<Ready> ready, cells_.Take());
  if (taken_.empty()) taken_.resize(cells_.records().size());
  for (const Ready& each : ready) taken_[*each.index] = each.cell;
  if (!cells_.done()) return ready;
  done_ = true;
  const size_t asked = taken_.size();
  taken_ = WithRepeats(std::move(taken_), runs_);
  for (size_t i = asked; i < taken_.size(); ++i) ready.push_back({std::nullopt, taken_[i]});
  return ready;
}

std::vector<const CellRecord*> RepeatsOf(const RunRecord& run, const CellRecord& cell) {
  std::vector<const CellRecord*> repeats;
  for (const CellRecord& other : run.cells) {
    if (other.repeat_of == cell.id) repeats.push_back(&other);
  }
  return repeats;
}

StableVerdict Together(const CellRecord& first, const std::vector<const CellRecord*>& repeats) {
  StableVerdict result{.verdict = first.verdict.value_or(Verdict())};
  std::vector<const CellRecord*> runs = {&first};
  runs.insert(runs.end(), repeats.begin(), repeats.end());
  const Verdict* worst = nullptr;
  for (const CellRecord* run : runs) {
    if (!IsNoAccident(run->verdict)) continue;
    ++result.stability.runs;
    ++result.stability.verdicts[ShortText(*run->verdict)];
    if (worst == nullptr || Badness(run->verdict->kind) > Badness(worst->kind))
      worst = &*run->verdict;
  }
  if (worst != nullptr) result.verdict = *worst;
  if (!result.stability.flaky()) return result;
  std::vector<std::string> seen;
  for (const auto& [text, count] : result.stability.verdicts)
    seen.push_back(absl::StrCat(count, " x ", text));
  result.verdict.message = absl::StrCat("flaky in ", result.stability.runs, " runs (",
                                        absl::StrJoin(seen, "; "), "): ", result.verdict.message);
  return result;
}

}  // namespace bkm
