// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/report/cost.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/base/json_facts.h"
#include "harness/base/shown_text.h"

namespace bkm {
namespace {

// null if nothing was measured.
Json Ratio(double a, double b) { return b > 0 ? Json(a / b) : Json(); }

std::string RatioText(double a, double b) { return b > 0 ? absl::StrFormat("%.2f", a / b) : "-"; }

}  // namespace

void CellCosts::Add(const std::string& lock, const Json& observation) {
  ++cells;
  runtimes.insert(lock);
  for (const Json& stage : ListOf(observation, "stages")) {
    const double seconds = FiniteOf(stage, "seconds").value_or(0);
    stages[ShownLine(TextOf(stage, "stage"))] += seconds;
    own += seconds;
  }
  for (const Json& step : ListOf(observation, "steps"))
    in_step += FiniteOf(step, "seconds").value_or(0);
}

std::string CostText(const CellCosts& costs, double wall_s, int slots) {
  std::string out = absl::StrFormat("%d cells of %d runtimes in %.1f s on %d slots\n", costs.cells,
                                    costs.runtimes.size(), wall_s, slots);
  for (const auto& [stage, seconds] : costs.stages)
    absl::StrAppend(&out, absl::StrFormat("  %-10s %8.1f s\n", stage, seconds));
  absl::StrAppend(
      &out, absl::StrFormat("  %-10s %8.1f s\n", "all stages", costs.own),
      absl::StrFormat("  %-10s %8.1f s\n", "in steps", costs.in_step),
      absl::StrFormat("  %-10s %8.1f s\n", "preloading", costs.preload),
      "wall x slots / time in the subjects: ", RatioText(wall_s * slots, costs.own), "\n",
      "wall x slots / time in steps:        ", RatioText(wall_s * slots, costs.in_step), "\n");
  return out;
}

Json CostJson(const CellCosts& costs, double wall_s, int slots) {
  return {{"cells", costs.cells},
          {"runtimes", costs.runtimes.size()},
          {"wall_s", wall_s},
          {"slots", slots},
          {"stages", costs.stages},
          {"own_s", costs.own},
          {"preload_s", costs.preload},
          {"in_step_s", costs.in_step},
          {"wall_over_own", Ratio(wall_s * slots, costs.own)},
          {"wall_over_in_step", Ratio(wall_s * slots, costs.in_step)}};
}

}  // namespace bkm
