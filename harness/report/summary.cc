// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/report/summary.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

constexpr size_t kCellsShown = 6;

// Cells with the same verdict and message.
struct Cause {
  const Verdict* verdict = nullptr;
  std::vector<std::string> cells;
};

std::vector<Cause> GroupByCause(const RunRecord& run) {
  std::vector<Cause> causes;
  for (const CellRecord& cell : run.cells) {
    if (!cell.verdict || cell.verdict->kind == VerdictKind::kOk || cell.role != CellRole::kSubject)
      continue;
    const Verdict& v = *cell.verdict;
    auto cause = std::find_if(causes.begin(), causes.end(), [&](const Cause& c) {
      return c.verdict->kind == v.kind && c.verdict->stage == v.stage &&
             c.verdict->reason == v.reason &&
             MessageWithoutPlace(c.verdict->message) == MessageWithoutPlace(v.message);
    });
    if (cause == causes.end()) cause = causes.insert(causes.end(), {.verdict = &v});
    cause->cells.push_back(CellLabel(cell));
  }
  std::stable_sort(causes.begin(), causes.end(),
                   [](const Cause& a, const Cause& b) { return a.cells.size() > b.cells.size(); });
  return causes;
}

std::string CountsText(const RunRecord& run) {
  std::map<std::string, int> counts;
  int controls = 0, repeats = 0, twins = 0;
  for (const CellRecord& cell : run.cells) {
    if (cell.role == CellRole::kControl) {
      ++controls;
    } else if (cell.role == CellRole::kRepeat) {
      ++repeats;
    } else if (cell.role == CellRole::kTwin) {
      ++twins;
    } else {
      ++counts[!cell.verdict     ? "not measured"
               : cell.is_flaky() ? "flaky"
                                 : std::string(Name(cell.verdict->kind))];
    }
  }
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts) parts.push_back(absl::StrCat(count, " ", name));
  if (controls > 0) parts.push_back(absl::StrCat(controls, " added as controls"));
  if (repeats > 0) parts.push_back(absl::StrCat(repeats, " repeats"));
  if (twins > 0) parts.push_back(absl::StrCat(twins, " without an engine option"));
  return absl::StrJoin(parts, ", ");
}

// What repeating the cells showed.
std::string VariationText(const RunRecord& run) {
  std::map<std::string, int> drifts;
  std::string flaky;
  double largest = 0;
  for (const CellRecord& cell : run.cells) {
    if (!cell.stability) continue;
    const Stability& stability = *cell.stability;
    if (cell.is_flaky()) absl::StrAppend(&flaky, "  ", CellLabel(cell), "\n");
    if (!stability.drift.empty()) ++drifts[stability.drift];
    largest = std::max(largest, stability.multiple);
  }
  std::vector<std::string> parts;
  for (const auto& [name, count] : drifts) parts.push_back(absl::StrCat(count, " ", name));
  std::string out;
  if (!parts.empty())
    out = absl::StrCat("\nRun-to-run variation: ", absl::StrJoin(parts, ", "),
                       absl::StrFormat(" (at most %.2g floors)\n", largest));
  if (!flaky.empty()) absl::StrAppend(&out, "\nFlaky:\n", flaky);
  return out;
}

}  // namespace

std::string SummaryText(const RunRecord& run) {
  std::string out = absl::StrCat("\n", run.matrix, ": ", CountsText(run), "\n");
  bool any_ok = false;
  for (const CellRecord& cell : run.cells) {
    if (!cell.is_green() || cell.role != CellRole::kSubject) continue;
    absl::StrAppend(&out, any_ok ? "" : "\nWorks:\n", "  ", CellLabel(cell),
                    StandInNote(*cell.verdict), "\n");
    any_ok = true;
  }
  absl::StrAppend(&out, VariationText(run));
  const std::vector<Cause> causes = GroupByCause(run);
  if (!causes.empty()) absl::StrAppend(&out, "\nDoes not work, by cause:\n");
  for (const Cause& cause : causes) {
    const Verdict& v = *cause.verdict;
    absl::StrAppend(&out, "  ", Name(v.kind), " at ", Name(v.stage), " (", v.reason,
                    "): ", MessageWithoutPlace(v.message), "\n");
    for (size_t i = 0; i < std::min(kCellsShown, cause.cells.size()); ++i)
      absl::StrAppend(&out, "    ", cause.cells[i], "\n");
    if (cause.cells.size() > kCellsShown)
      absl::StrAppend(&out, "    and ", cause.cells.size() - kCellsShown, " more\n");
  }
  return Printable(std::move(out));
}

}  // namespace bkm
