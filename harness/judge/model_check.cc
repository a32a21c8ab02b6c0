// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/model_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "harness/judge/case_file.h"
#include "harness/judge/claims.h"
#include "harness/numerics/error_measures.h"
#include "harness/numerics/rope_frequencies.h"

namespace bkm {
namespace {

// Relative. An epsilon passes through fp32 at most.
constexpr double kEpsilonTolerance = 1e-6;
// A frequency of fp32, taken to the power of the number of pairs: 64 * 6e-8. A table of cosines in
// bf16 would be 64 times coarser; no model here keeps one.
constexpr double kThetaTolerance = 1e-3;

// Whether the norm is part of an attention: "layers.0.self_attn.kv_a_layernorm", not
// "layers.0.attention_norm". Latent attention has no other norms than those of latent vectors.
bool IsInAttention(absl::string_view name) {
  const size_t end = name.rfind('.');
  if (end == absl::string_view::npos) return false;
  const absl::string_view owner = name.substr(0, end);
  const absl::string_view last = owner.substr(owner.rfind('.') + 1);
  return last == "self_attn" || last == "attention";
}

// Relative, of one frequency: that of the base for the second pair. Interpolations between fast and
// slow pairs lose some digits of fp32.
constexpr double kFrequencyTolerance = 1e-4;

// Relative, of a number that was rounded to bf16, which has eight bits: half of the last one.
constexpr double kBf16Rounding = 1.0 / 256;

bool IsNear(double value, double asked, double tolerance) {
  return std::abs(value - asked) <= tolerance * asked;
}

double RoundedToBf16(double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, kBf16FractionBits + 1)),
                    exponent - kBf16FractionBits - 1);
}

// How many tolerances `built` is off.
double SizeOf(double built, double asked, double tolerance) {
  return std::abs(built - asked) / (tolerance * asked);
}

std::string Says(absl::string_view what, double built, double asked) {
  return absl::StrFormat("%s is %g, and the configuration says %g", what, built, asked);
}

// The pairs whose frequencies are too far from the asked ones, the furthest first.
std::vector<size_t> OtherPairs(const std::vector<double>& built, const std::vector<double>& asked,
                               double tolerance = kFrequencyTolerance) {
  std::vector<std::pair<double, size_t>> off;
  for (size_t i = 0; i < asked.size(); ++i) {
    const double error = std::abs(built[i] - asked[i]) / asked[i];
    // Also where it is not a number.
    if (!(error <= tolerance))
      off.emplace_back(std::isnan(error) ? std::numeric_limits<double>::infinity() : error, i);
  }
  std::stable_sort(off.begin(), off.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<size_t> pairs;
  for (const auto& [error, pair] : off) pairs.push_back(pair);
  return pairs;
}

// What all frequencies together look like, of those that are known to go wrong; empty if like
// nothing known.
std::string PatternOf(const std::vector<double>& built, const ModelShape& asked) {
  const int64_t dim = RotatedDim(asked);
  const std::vector<double> wanted = ExactRopeFrequencies(asked.rope, dim);
  RopeShape other = asked.rope;
  other.scaling = "default";
  if (asked.rope.scaling != other.scaling &&
      OtherPairs(built, ExactRopeFrequencies(other, dim)).empty())
    return absl::StrCat("without its scaling ", asked.rope.scaling);
  // A table of cosines and sines gives a frequency back to a few digits less than fp32 has.
  const bool is_coarse = std::all_of(built.begin(), built.end(), [](double frequency) {
    return IsNear(frequency, RoundedToBf16(frequency), 1e-6);
  });
  if (is_coarse && OtherPairs(built, wanted, kBf16Rounding * 1.001).empty())
    return "all are rounded to bf16";
  return "";
}

// The frequencies of the rotary embedding that are not those of the configuration.
std::vector<FailedPlace> OtherFrequencies(const std::vector<double>& built,
                                          const ModelShape& asked) {
  const std::vector<double> wanted = ExactRopeFrequencies(asked.rope, RotatedDim(asked));
  if (built.size() != wanted.size())
    return {{"rotary embedding",
             Says("the number of pairs of the rotary embedding", static_cast<double>(built.size()),
                  static_cast<double>(wanted.size()))}};
  const std::vector<size_t> pairs = OtherPairs(built, wanted);
  if (pairs.empty()) return {};
  const std::string pattern = PatternOf(built, asked);
  std::vector<FailedPlace> places;
  for (const size_t pair : pairs) {
    const double size = SizeOf(built[pair], wanted[pair], kFrequencyTolerance);
    places.push_back({absl::StrCat("pair ", pair),
                      Says(absl::StrCat("the frequency of pair ", pair, " of ", built.size(),
                                        " of the rotary embedding",
                                        pattern.empty() ? "" : absl::StrCat(" (", pattern, ")")),
                           built[pair], wanted[pair]),
                      std::isfinite(size) ? std::optional<double>(size) : std::nullopt});
  }
  return places;
}

double EpsilonOf(const ObservedNorm& norm, const ModelShape& asked) {
  const bool is_latent = asked.latent.rank > 0 && IsInAttention(norm.name);
  return is_latent ? asked.latent.norm_epsilon : asked.norm_epsilon;
}

// The norms whose epsilon is not that of the configuration.
std::vector<FailedPlace> OtherNorms(const std::vector<ObservedNorm>& norms,
                                    const ModelShape& asked) {
  std::vector<FailedPlace> places;
  for (const ObservedNorm& norm : norms) {
    const double epsilon = EpsilonOf(norm, asked);
    if (IsNear(norm.epsilon, epsilon, kEpsilonTolerance)) continue;
    places.push_back(
        {norm.name,
         Says(absl::StrCat("the epsilon of ", norm.name.empty() ? "a norm" : norm.name),
              norm.epsilon, epsilon),
         SizeOf(norm.epsilon, epsilon, kEpsilonTolerance)});
  }
  return places;
}

}  // namespace

CheckResult CheckModel(const ObservedModel& built, const ModelShape& asked) {
  std::vector<ObservedNorm> norms = built.norms;
  // Without names, no norm may have an epsilon of its own.
  for (const double epsilon : built.norm_epsilons) norms.push_back({"", epsilon});
  std::set<double> epsilons;
  for (const ObservedNorm& norm : norms) epsilons.insert(norm.epsilon);
  Json evidence = {{"norm_epsilons", epsilons}};
  if (built.rope_theta) evidence["rope_theta"] = *built.rope_theta;
  if (const size_t pairs = built.rope_frequencies.size(); pairs > 0)
    evidence["rope_frequencies"] = pairs;
  if (norms.empty())
    return CheckResult::Unseen(Stage::kLoad, "no norm was found in the model", std::move(evidence));
  std::vector<FailedPlace> places = OtherNorms(norms, asked);
  const size_t other_norms = places.size();
  if (other_norms > 0 && built.norms.empty() && asked.latent.rank > 0)
    return CheckResult::Unseen(Stage::kLoad,
                               "this older observation does not say which norm has which epsilon",
                               std::move(evidence));
  std::vector<FailedPlace> frequencies;
  if (!built.rope_frequencies.empty())
    frequencies = OtherFrequencies(built.rope_frequencies, asked);
  const bool has_other_base =
      built.rope_theta && !IsNear(*built.rope_theta, asked.rope.theta, kThetaTolerance);
  // The base is taken from one frequency: where all are known, it must explain the others.
  RopeShape with_base = asked.rope;
  with_base.theta = built.rope_theta.value_or(asked.rope.theta);
  const bool base_explains =
      built.rope_frequencies.empty() ||
      (frequencies.size() > 1 &&
       built.rope_frequencies.size() == static_cast<size_t>(RotatedDim(asked)) / 2 &&
       OtherPairs(built.rope_frequencies, ExactRopeFrequencies(with_base, RotatedDim(asked)),
                  kThetaTolerance)
           .empty());
  if (has_other_base && base_explains) {
    places.push_back({"rotary embedding",
                      Says("the base of the rotary embedding", *built.rope_theta, asked.rope.theta),
                      SizeOf(*built.rope_theta, asked.rope.theta, kThetaTolerance)});
  } else {
    places.insert(places.end(), frequencies.begin(), frequencies.end());
  }
  if (places.empty()) return CheckResult::Passed(Stage::kLoad, std::move(evidence));
  if (other_norms > 0) evidence["other_norms"] = absl::StrCat(other_norms, " of ", norms.size());
  CheckResult failed =
      CheckResult::Failed(Stage::kLoad, reason::kConfigIgnored, "", std::move(evidence))
          .At(std::move(places));
  failed.message = failed.places.front().what;
  if (failed.places.size() > 1)
    absl::StrAppend(&failed.message, "; and ", failed.places.size() - 1, " more");
  return failed;
}

namespace {

CheckResult CheckModelOf(const CaseFile& file) {
  const absl::StatusOr<ModelShape> shape = ShapeOf(file.probe());
  if (!shape.ok()) return CheckResult::Unreadable(Stage::kLoad, shape.status());
  return CheckModel(file.seen().model, *shape);
}

}  // namespace

extern const Claim kModelClaim = {
    .name = "model",
    .rung = Stage::kLoad,
    .says = "the model was built as its configuration says",
    .witness =
        "the epsilon of each norm, and base and frequencies of the rotary embedding (so its "
        "scaling, too), after loading",
    .cannot_see =
        "other numbers of the configuration, which the numbers show; in bf16, small errors "
        "in frequencies of which the model keeps no table (its row says so)",
    .applies = OfFinishedCells,
    .check = CheckModelOf,
};

}  // namespace bkm
