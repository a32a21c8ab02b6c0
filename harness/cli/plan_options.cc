// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cli/plan_options.h"

#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"
#include "harness/cli/command.h"

namespace bkm {

void PlanOptions::AddTo(CLI::App& app) {
  app.add_option(
         "--cover", cover_,
         "Run only as many cells as it takes to have every combination of N values (engine "
         "version, library version, attention, ...) of the matrix in one of them: 1, 2 or 3")
      ->check(CLI::Range(1, 3));
  app.add_flag(
      "--urgent-first", urgent_first_,
      "Run cells first that the published table does not have, then those of expired rows, "
      "then flaky and contradicted ones. --cover prefers them");
  app.add_option("--table", table_,
                 "For --urgent-first: published table.json (default: published/table.json of this "
                 "installation, else golden/table/table.json)")
      ->needs("--urgent-first");
}

absl::StatusOr<PlanOptions::Applied> PlanOptions::Apply(const Installation& installation,
                                                        std::vector<PlannedCell>& plan) const {
  Applied applied;
  if (urgent_first_) {
    if (order_ == nullptr) return NeedsWholeProgram("--urgent-first");
    ASSIGN_OR_RETURN(applied.priorities, order_(installation, table_, plan));
  }
  if (cover_ > 0) applied.cover = ApplyCover(cover_, plan);
  return applied;
}

std::string PlanOptions::Applied::Text() const {
  std::string text;
  if (!priorities.empty()) absl::StrAppend(&text, "--urgent-first: ", priorities, "\n");
  if (cover) absl::StrAppend(&text, CoverText(*cover));
  return text;
}

}  // namespace bkm
