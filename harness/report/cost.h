// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REPORT_COST_H_
#define HARNESS_REPORT_COST_H_

#include <map>
#include <set>
#include <string>

#include "harness/base/json.h"

namespace bkm {

// Where the time of a run's cells went, in seconds of wall time inside their processes.
struct CellCosts {
  int cells = 0;
  std::set<std::string> runtimes;  // locks: each was preloaded once
  std::map<std::string, double>
      stages;          // the subjects' own time by stage; evidence forwards are in `mask`
  double own = 0;      // all stages
  double preload = 0;  // of the runtimes, once each
  double in_step = 0;  // training steps alone

  // Adds the stages and steps of one observation, made in the runtime `lock`.
  void Add(const std::string& lock, const Json& observation);
};

// A table for people. `wall_s` x `slots` is what the machine gave while these cells ran, preloading
// included.
std::string CostText(const CellCosts& costs, double wall_s, int slots);
Json CostJson(const CellCosts& costs, double wall_s, int slots);

}  // namespace bkm

#endif  // HARNESS_REPORT_COST_H_
