// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REPORT_COST_H_
#define HARNESS_REPORT_COST_H_

#include <map>
#include <set>
#include <string>

#include "harness/base/json.h"

namespace bkm {

// Where the time of a run's cells went: wall time inside their processes, in seconds.
struct CellCosts {
  int cells = 0;
  std::set<std::string> runtimes;  // their locks; each was preloaded once
  std::map<std::string, double>
      stages;          // time in the subjects, by stage; `mask` includes the evidence forwards
  double own = 0;      // all stages
  double preload = 0;  // time to preload each runtime once
  double in_step = 0;  // time in training steps

  // Adds one observation that was made in the runtime `lock`.
  void Add(const std::string& lock, const Json& observation);
};

// A table for people. `wall_s` x `slots` is the time that the machine spent on these cells,
// preloading included.
std::string CostText(const CellCosts& costs, double wall_s, int slots);
Json CostJson(const CellCosts& costs, double wall_s, int slots);

}  // namespace bkm

#endif  // HARNESS_REPORT_COST_H_
