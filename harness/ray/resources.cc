// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/ray/resources.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace bkm {
namespace {

constexpr double kMiB = 1 << 20;
constexpr double kGiB = 1 << 30;
constexpr int kMostCells = 1024;

// The two sides of "NAME=VALUE"; empty if it is none.
std::pair<std::string, std::string> Sides(absl::string_view item) {
  std::pair<std::string, std::string> sides = absl::StrSplit(item, absl::MaxSplits('=', 1));
  return sides;
}

absl::Status Refuse(absl::string_view item, absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat("'", std::string(item), "' is not ", wanted));
}

}  // namespace

absl::StatusOr<RayResources> ParseRayResources(const std::string& text) {
  constexpr char kWanted[] = "a resource such as CPU=2, memory=4GiB or GPU=1";
  RayResources resources;
  for (absl::string_view item : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const auto [name, value] = Sides(item);
    absl::string_view amount = value;
    double unit = 1;
    if (name == "memory" && absl::ConsumeSuffix(&amount, "GiB")) unit = kGiB;
    if (name == "memory" && absl::ConsumeSuffix(&amount, "MiB")) unit = kMiB;
    double number = 0;
    if (name.empty() || !absl::SimpleAtod(amount, &number) || !std::isfinite(number) || number < 0)
      return Refuse(item, kWanted);
    if (!resources.emplace(name, number * unit).second)
      return absl::InvalidArgumentError(absl::StrCat("resource '", name, "' is there twice"));
  }
  return resources;
}

absl::StatusOr<std::map<std::string, std::string>> ParseRayLabels(const std::string& text) {
  std::map<std::string, std::string> labels;
  for (absl::string_view item : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const auto [name, value] = Sides(item);
    if (name.empty() || value.empty()) return Refuse(item, "a label such as zone=a");
    labels[name] = value;
  }
  return labels;
}

std::string RayResourcesText(const RayResources& resources) {
  std::vector<std::string> items;
  for (const auto& [name, amount] : resources) {
    items.push_back(name == "memory" ? absl::StrCat("memory ", amount / kGiB, " GiB")
                                     : absl::StrCat(name, " ", amount));
  }
  return absl::StrJoin(items, ", ");
}

int CellsThatFit(const RayResources& cell, const RayResources& node) {
  double fit = kMostCells;
  for (const auto& [name, amount] : cell) {
    if (amount <= 0) continue;
    const auto has = node.find(name);
    fit = std::min(fit, has == node.end() ? 0 : std::floor(has->second / amount));
  }
  return static_cast<int>(fit);
}

RayResources RayResourcesOf(const Json& json) {
  RayResources resources;
  if (!json.is_object()) return resources;
  for (const auto& [name, amount] : json.items()) {
    if (amount.is_number()) resources[name] = amount.get<double>();
  }
  return resources;
}

}  // namespace bkm
