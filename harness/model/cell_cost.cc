// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/cell_cost.h"

#include <algorithm>
#include <vector>

#include "harness/base/json_facts.h"

namespace bkm {
namespace {

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double StepSeconds(const Json& observation) {
  const auto steps = observation.find("steps");
  if (steps == observation.end() || !steps->is_array()) return 0;
  std::vector<double> seconds;
  for (size_t k = 1; k < steps->size(); ++k) {
    const double one = FiniteOf((*steps)[k], "seconds").value_or(0);
    if (one <= 0) return 0;
    seconds.push_back(one);
  }
  return Median(std::move(seconds));
}

}  // namespace

CellCost CostOf(const Json& observation) {
  const Json& usage = ObjectOf(observation, "usage");
  return {.seconds = std::max(FiniteOf(usage, "wall_s").value_or(0), 0.0),
          .step_seconds = StepSeconds(observation),
          .peak_mib = std::max(FiniteOf(usage, "max_rss_mib").value_or(0), 0.0)};
}

void DescribeCost(Fields& fields, CellCost& cost) {
  fields.Field("seconds", cost.seconds, Presence::kOptional);
  fields.Field("step_seconds", cost.step_seconds, Presence::kOmitted);
  fields.Field("peak_mib", cost.peak_mib, Presence::kOmitted);
}

}  // namespace bkm
