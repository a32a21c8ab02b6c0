// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/priority.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace bkm {
namespace {

constexpr Priority kPriorities[] = {Priority::kNew, Priority::kExpired, Priority::kSuspect,
                                    Priority::kKnown};

Priority PriorityOf(const PublishedRow& row, const PublishedCell& cell, absl::string_view day) {
  if (IsExpired(row, day)) return Priority::kExpired;
  return cell.flaky || !cell.contradicted_by.empty() ? Priority::kSuspect : Priority::kKnown;
}

}  // namespace

absl::string_view Name(Priority priority) {
  switch (priority) {
    case Priority::kNew:
      return "new";
    case Priority::kExpired:
      return "expired";
    case Priority::kSuspect:
      return "suspect";
    case Priority::kKnown:
      break;
  }
  return "known";
}

Priorities::Priorities(const PublishedTable& table, absl::string_view day) {
  for (const PublishedRow& row : table.rows) {
    for (const PublishedCell& cell : row.cells) known_[cell.id] = PriorityOf(row, cell, day);
  }
}

Priority Priorities::Of(const PlannedCell& planned) const {
  if (planned.cell.is_control()) return Priority::kKnown;
  const auto found = known_.find(planned.id);
  return found == known_.end() ? Priority::kNew : found->second;
}

void Priorities::Sort(std::vector<PlannedCell>& plan) const {
  std::stable_sort(plan.begin(), plan.end(),
                   [&](const PlannedCell& a, const PlannedCell& b) { return Of(a) < Of(b); });
}

std::string Priorities::Counts(const std::vector<PlannedCell>& plan) const {
  std::map<Priority, int> counts;
  for (const PlannedCell& planned : plan) counts[Of(planned)] += planned.included;
  return absl::StrJoin(kPriorities, ", ", [&](std::string* out, Priority priority) {
    absl::StrAppend(out, counts[priority], " ", Name(priority));
  });
}

}  // namespace bkm
