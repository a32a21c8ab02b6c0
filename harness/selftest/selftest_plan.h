// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SELFTEST_SELFTEST_PLAN_H_
#define HARNESS_SELFTEST_SELFTEST_PLAN_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/matrix/plan.h"
#include "harness/selftest/catalogue.h"

namespace bkm {

struct SelftestPlan {
  // Planted cells, preceded by the fault-free cell of each probe that they use.
  std::vector<PlannedCell> cells;
  std::map<std::string, const CatalogueFault*> faults;  // by cell id; fault-free cells have none
};

// The product of the catalogue and `pairings`, the fault-free cells of a matrix. Planted cells must
// match one of `filters`, if there are any. `catalogue` must outlive the plan.
absl::StatusOr<SelftestPlan> PlanSelftest(const Catalogue& catalogue,
                                          const std::vector<PlannedCell>& pairings,
                                          const std::vector<CellFilter>& filters);

}  // namespace bkm

#endif  // HARNESS_SELFTEST_SELFTEST_PLAN_H_
