// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CLI_PLAN_OPTIONS_H_
#define HARNESS_CLI_PLAN_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/matrix/cover.h"
#include "harness/matrix/plan.h"
#include "harness/runner/installation.h"

namespace bkm {

// Brings the cells to the front that the published table at `table` (empty: the one of the
// installation) knows least of. Returns "3 new, 1 expired, ...". Null in a program that reads no
// published table (bkm_run).
using UrgencyOrder = absl::StatusOr<std::string> (*)(const Installation& installation,
                                                     const std::string& table,
                                                     std::vector<PlannedCell>& plan);

// --cover and --urgent-first of the commands that plan a matrix: which of its cells run, and which
// run first.
class PlanOptions {
 public:
  explicit PlanOptions(UrgencyOrder urgent_first) : order_(urgent_first) {}

  void AddTo(CLI::App& app);

  struct Applied {
    std::optional<Cover> cover;
    std::string priorities;  // "3 new, 1 expired, ..."; empty if the order is that of the matrix
    // For people; empty if nothing was asked for.
    std::string Text() const;
  };
  // Orders the cells, and excludes those that a cover leaves out.
  absl::StatusOr<Applied> Apply(const Installation& installation,
                                std::vector<PlannedCell>& plan) const;
  bool covers() const { return cover_ > 0; }

 private:
  UrgencyOrder order_;
  int cover_ = 0;
  bool urgent_first_ = false;
  std::string table_;
};

}  // namespace bkm

#endif  // HARNESS_CLI_PLAN_OPTIONS_H_
