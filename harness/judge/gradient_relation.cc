// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/gradient_relation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "harness/judge/numbers_check.h"

namespace bkm {
namespace {

// A tensor whose right error is larger than this says nothing about a factor.
constexpr double kMostFloor = 0.05;
// Tensors share a factor if theirs differ by less than this beyond their rounding.
constexpr double kSameFactor = 0.01;

struct Factor {
  double factor = 1;
  double tolerance = 0;  // relative
  bool IsNear(double other) const {
    return std::abs(factor - other) <= (tolerance + kSameFactor) * std::abs(other);
  }
};

// Whether a tensor's gradient is known well enough to have a factor.
bool IsKnown(const std::vector<double>& seen, const std::vector<double>& golden, double floor) {
  return seen.size() == golden.size() && floor <= kMostFloor &&
         std::any_of(golden.begin(), golden.end(), [](double x) { return x != 0; });
}

// The factor between two vectors of the same direction; nullopt if their directions differ.
std::optional<Factor> FactorBetween(const std::vector<double>& seen,
                                    const std::vector<double>& golden, double floor) {
  double product = 0, square = 0;
  for (size_t i = 0; i < seen.size(); ++i) {
    product += seen[i] * golden[i];
    square += golden[i] * golden[i];
  }
  if (!std::isfinite(product)) return std::nullopt;
  const double factor = product / square;
  double rest = 0;
  for (size_t i = 0; i < seen.size(); ++i) {
    const double off = seen[i] - factor * golden[i];
    rest += off * off;
  }
  const double tolerance = kFloorMultiple * floor;
  if (std::sqrt(rest) > (tolerance + kSameFactor) * std::abs(factor) * std::sqrt(square) &&
      factor != 0)
    return std::nullopt;
  return Factor{factor, tolerance};
}

const char* KindOfParameter(absl::string_view name) {
  if (absl::StrContains(name, "norm")) return "norms";
  if (absl::StrContains(name, "embed") || absl::StrContains(name, "lm_head"))
    return "the embedding and the head";
  if (absl::StrContains(name, ".experts.")) return "experts";
  if (absl::StrContains(name, "router") || absl::StrContains(name, ".gate.")) return "the router";
  if (absl::StrContains(name, "attn")) return "attention";
  return "the feed-forward layers";
}

// What a reduction over a group of ranks must have done to give this factor.
std::string Explanation(double factor, const Layout& layout) {
  std::set<int> groups;
  for (const LayoutDimension& dimension : LayoutDimensions())
    groups.insert(layout.*dimension.degree);
  groups.insert({layout.data_ranks(), layout.ranks()});
  for (const int group : groups) {
    if (group == 1) continue;
    if (std::abs(factor - group) < kSameFactor * group)
      return absl::StrCat(": summed, not averaged, over a group of ", group);
    if (std::abs(factor * group - 1) < kSameFactor)
      return absl::StrCat(": averaged once too often over a group of ", group);
  }
  return "";
}

}  // namespace

double ClippedBy(double norm, double clip) { return clip > 0 ? std::max(1.0, norm / clip) : 1.0; }

std::optional<std::string> DescribeFactor(const GradientComparison& gradients,
                                          const Layout& layout) {
  const double scale = ClippedBy(gradients.seen_norm, gradients.clip_norm) /
                       ClippedBy(gradients.golden_norm, gradients.clip_norm);
  std::map<std::string, Factor> factors;  // by tensor
  size_t exact = 0;
  std::set<std::string> scaled, others;  // kinds of parameters
  for (const auto& [name, golden] : gradients.golden) {
    const auto seen = gradients.seen.find(name);
    const auto floor = gradients.floor.find(name);
    if (seen == gradients.seen.end() || floor == gradients.floor.end() ||
        !IsKnown(seen->second.gradient, golden.gradient, floor->second))
      continue;
    ++exact;
    std::optional<Factor> factor =
        FactorBetween(seen->second.gradient, golden.gradient, floor->second);
    if (!factor) {
      others.insert(KindOfParameter(name));
      continue;
    }
    factor->factor *= scale;
    factors[name] = *factor;
  }
  // The tensor that is told apart from 1 best gives the factor.
  const Factor* common = nullptr;
  for (const auto& [name, factor] : factors) {
    if (factor.IsNear(1)) continue;
    if (common == nullptr || factor.tolerance < common->tolerance) common = &factor;
  }
  if (common == nullptr) return std::nullopt;
  size_t count = 0;
  for (const auto& [name, factor] : factors) {
    const bool is_scaled = factor.IsNear(common->factor);
    if (!is_scaled && !factor.IsNear(1)) return std::nullopt;
    count += is_scaled;
    (is_scaled ? scaled : others).insert(KindOfParameter(name));
  }
  std::string where = "every tensor";
  if (!others.empty()) {
    std::set<std::string> both;
    std::set_intersection(scaled.begin(), scaled.end(), others.begin(), others.end(),
                          std::inserter(both, both.begin()));
    where = both.empty() ? absl::StrJoin(scaled, " and ")
                         : absl::StrCat(count, " of ", exact, " tensors");
  }
  return absl::StrFormat("gradients are %.3f times the golden in %s%s", common->factor, where,
                         Explanation(common->factor, layout));
}

}  // namespace bkm
