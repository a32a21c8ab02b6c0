// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_PRIORITY_H_
#define HARNESS_PUBLISH_PRIORITY_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "harness/matrix/plan.h"
#include "harness/publish/published_table.h"

namespace bkm {

// What a published table knows of a cell, the most urgent first.
enum class Priority {
  kNew,      // nothing: a version that it does not have, or a new probe
  kExpired,  // its row's evidence is too old
  kSuspect,  // its results vary, or runs contradict each other
  kKnown,
};
absl::string_view Name(Priority priority);

// The priorities of the cells of a table, on a day.
class Priorities {
 public:
  Priorities(const PublishedTable& table, absl::string_view day);

  // A control is not a row of a table: it is never urgent.
  Priority Of(const PlannedCell& planned) const;
  // Brings urgent cells to the front. Equally urgent ones keep their order.
  void Sort(std::vector<PlannedCell>& plan) const;
  // "3 new, 1 expired, 0 suspect, 20 known" of the cells that are included.
  std::string Counts(const std::vector<PlannedCell>& plan) const;

 private:
  std::map<std::string, Priority> known_;  // by cell id
};

}  // namespace bkm

#endif  // HARNESS_PUBLISH_PRIORITY_H_
