// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/selftest/selftest_plan.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/model/engine_kind.h"

namespace bkm {
namespace {

absl::StatusOr<Cell> WithProbe(const Cell& cell, const CatalogueFault& fault) {
  if (fault.probe.empty()) return cell;
  Json probe = ToJson(cell.probe);
  probe.merge_patch(fault.probe);
  // The warm-up follows the engine's own schedule.
  Json& optimizer = probe["optimizer"];
  if (WholeOf(optimizer, "warmup_steps") > 0 && TextOf(optimizer, "schedule").empty())
    optimizer["schedule"] = FindEngineKind(cell.engine)->schedule;
  Cell changed = cell;
  ASSIGN_OR_RETURN(changed.probe,
                   ProbeFromJson(probe, absl::StrCat("probe of the fault ", fault.id)));
  return changed;
}

class Planner {
 public:
  explicit Planner(const std::vector<CellFilter>& filters) : filters_(filters) {}

  absl::Status Add(const CatalogueFault& fault, const Cell& pairing) {
    const bool is_for_trainers = !fault.where.drives.empty();
    if (!fault.where.Has(pairing) || (pairing.probe.drive == "trainer" && !is_for_trainers))
      return absl::OkStatus();
    ASSIGN_OR_RETURN(const Cell plain, WithProbe(pairing, fault));
    Cell planted = plain;
    planted.plant = {fault.id};
    const bool wanted =
        filters_.empty() || std::any_of(filters_.begin(), filters_.end(),
                                        [&](const CellFilter& f) { return f.Matches(planted); });
    if (!wanted) return absl::OkStatus();
    const std::string plain_id = CellId(plain);
    if (seen_.insert(plain_id).second) plan_.cells.push_back({.cell = plain, .id = plain_id});
    const std::string id = CellId(planted);
    plan_.cells.push_back({.cell = planted, .id = id});
    plan_.faults[id] = &fault;
    return absl::OkStatus();
  }

  SelftestPlan Take() { return std::move(plan_); }

 private:
  const std::vector<CellFilter>& filters_;
  std::set<std::string> seen_;
  SelftestPlan plan_;
};

}  // namespace

absl::StatusOr<SelftestPlan> PlanSelftest(const Catalogue& catalogue,
                                          const std::vector<PlannedCell>& pairings,
                                          const std::vector<CellFilter>& filters) {
  Planner planner(filters);
  // Pairing by pairing: cells of one runtime are adjacent, so its worker starts once.
  for (const PlannedCell& pairing : pairings) {
    if (!pairing.included) continue;
    for (const CatalogueFault& fault : catalogue.faults)
      RETURN_IF_ERROR(planner.Add(fault, pairing.cell));
  }
  return planner.Take();
}

}  // namespace bkm
