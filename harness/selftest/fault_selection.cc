// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/selftest/fault_selection.h"

#include <map>
#include <utility>

#include "harness/base/status_macros.h"

namespace bkm {

absl::StatusOr<std::vector<CellFilter>> FiltersOf(const FaultSelection& selection,
                                                  const Catalogue& catalogue) {
  if (!selection.has_patterns()) return selection.all ? std::vector<CellFilter>() : catalogue.smoke;
  std::vector<std::map<std::string, std::string>> product = {{}};
  const auto multiply = [&](const char* key, const std::vector<std::string>& patterns) {
    if (patterns.empty()) return;
    std::vector<std::map<std::string, std::string>> larger;
    for (const auto& chosen : product) {
      for (const std::string& pattern : patterns) {
        larger.push_back(chosen);
        larger.back()[key] = pattern;
      }
    }
    product = std::move(larger);
  };
  multiply("plant", selection.faults);
  multiply("engine", selection.engines);
  multiply("attention", selection.attentions);
  multiply("model", selection.models);
  std::vector<CellFilter> filters;
  for (auto& patterns : product) {
    ASSIGN_OR_RETURN(filters.emplace_back(), CellFilter::FromPatterns(std::move(patterns)));
  }
  return filters;
}

}  // namespace bkm
