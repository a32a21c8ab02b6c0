// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/session/one_cell.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"

namespace bkm {

absl::StatusOr<OneCell> OneCell::Load(const Matrix& matrix, const std::vector<CellFilter>& filters,
                                      const PreparationOptions& options, RunObserver& observer) {
  ASSIGN_OR_RETURN(const Installation installation, Installation::Find());
  RETURN_IF_ERROR(installation.CheckBuilt());
  ASSIGN_OR_RETURN(std::unique_ptr<Preparation> preparation,
                   Preparation::Create(matrix, options, observer));
  ASSIGN_OR_RETURN(std::vector<PlannedCell> plan,
                   ExpandMatrix(matrix, filters, preparation->Environment()));
  std::string why;
  for (const PlannedCell& planned : plan) {
    if (!planned.included && why.empty()) why = planned.why;
  }
  std::erase_if(plan, [](const PlannedCell& planned) { return !planned.included; });
  if (plan.empty()) return absl::InvalidArgumentError(absl::StrCat("the cell is excluded: ", why));
  if (plan.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the selection has ", plan.size(),
                     " cells, but only one can be searched at a time: add --filter (the second is ",
                     plan[1].id, ")"));
  }
  return OneCell{installation, matrix, std::move(preparation), plan[0]};
}

}  // namespace bkm
