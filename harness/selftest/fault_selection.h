// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SELFTEST_FAULT_SELECTION_H_
#define HARNESS_SELFTEST_FAULT_SELECTION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/model/cell.h"
#include "harness/selftest/catalogue.h"

namespace bkm {

// Which planted cells a self-test runs: shell patterns, where an empty list matches everything.
struct FaultSelection {
  std::vector<std::string> faults;
  std::vector<std::string> engines;  // kinds
  std::vector<std::string> attentions;
  std::vector<std::string> models;
  bool all = false;  // without patterns: the whole catalogue, not only its smoke test

  bool has_patterns() const {
    return !faults.empty() || !engines.empty() || !attentions.empty() || !models.empty();
  }
  // Whether nothing of the catalogue is left out.
  bool whole() const { return all && !has_patterns(); }
};

// A filter for each combination of patterns; none: every cell.
absl::StatusOr<std::vector<CellFilter>> FiltersOf(const FaultSelection& selection,
                                                  const Catalogue& catalogue);

}  // namespace bkm

#endif  // HARNESS_SELFTEST_FAULT_SELECTION_H_
