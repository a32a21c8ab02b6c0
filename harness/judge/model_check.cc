// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/model_check.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/numerics/rope_frequencies.h"

namespace bkm {
namespace {

// Relative. An epsilon passes through fp32 at most.
constexpr double kEpsilonTolerance = 1e-6;
// A frequency of fp32, taken to the power of the number of pairs: 64 * 6e-8. A table of cosines in
// bf16 would be 64 times coarser; no model here keeps one.
constexpr double kThetaTolerance = 1e-3;

// transformers and DeepSeek's own code give this epsilon to the norms of latent attention, whatever
// rms_norm_eps says (DeepseekV3RMSNorm's default).
constexpr double kLatentEpsilon = 1e-6;

// Relative, of one frequency: that of the base for the second pair. Interpolations between fast and
// slow pairs lose some digits of fp32.
constexpr double kFrequencyTolerance = 1e-4;

bool IsNear(double value, double asked, double tolerance) {
  return std::abs(value - asked) <= tolerance * asked;
}

CheckResult Ignored(std::string what, double built, double asked, Json evidence) {
  return CheckResult::Failed(
      Stage::kLoad, reason::kConfigIgnored,
      absl::StrFormat("%s is %g, and the configuration says %g", what, built, asked),
      std::move(evidence));
}

// The pair whose frequency is furthest from the asked one, if any is too far.
std::optional<size_t> OtherPair(const std::vector<double>& built,
                                const std::vector<double>& asked) {
  std::optional<size_t> worst;
  double most = kFrequencyTolerance;
  for (size_t i = 0; i < asked.size(); ++i) {
    const double error = std::abs(built[i] - asked[i]) / asked[i];
    // Also where it is not a number.
    if (error <= most) continue;
    most = error;
    worst = i;
  }
  return worst;
}

CheckResult CheckFrequencies(const std::vector<double>& built, const ModelShape& asked,
                             Json evidence) {
  const int64_t dim = RotatedDim(asked);
  const std::vector<double> wanted = ExactRopeFrequencies(asked.rope, dim);
  if (built.size() != wanted.size())
    return Ignored("the number of pairs of the rotary embedding", static_cast<double>(built.size()),
                   static_cast<double>(wanted.size()), std::move(evidence));
  const std::optional<size_t> pair = OtherPair(built, wanted);
  if (!pair) return CheckResult::Passed(Stage::kLoad, std::move(evidence));
  RopeShape unscaled = asked.rope;
  unscaled.scaling = "default";
  const bool left_out = !OtherPair(built, ExactRopeFrequencies(unscaled, dim));
  return Ignored(
      absl::StrFormat(
          "the frequency of pair %d of %d of the rotary embedding%s", *pair, built.size(),
          left_out ? absl::StrCat(" (without its scaling ", asked.rope.scaling, ")") : ""),
      built[*pair], wanted[*pair], std::move(evidence));
}

}  // namespace

CheckResult CheckModel(const ObservedModel& built, const ModelShape& asked) {
  Json evidence = {{"norm_epsilons", built.norm_epsilons}};
  if (built.rope_theta) evidence["rope_theta"] = *built.rope_theta;
  if (const size_t pairs = built.rope_frequencies.size(); pairs > 0)
    evidence["rope_frequencies"] = pairs;
  if (built.norm_epsilons.empty())
    return CheckResult::Unseen(Stage::kLoad, "no norm was found in the model", std::move(evidence));
  for (const double epsilon : built.norm_epsilons) {
    const bool may_be_latent =
        asked.latent.rank > 0 && IsNear(epsilon, kLatentEpsilon, kEpsilonTolerance);
    if (!may_be_latent && !IsNear(epsilon, asked.norm_epsilon, kEpsilonTolerance))
      return Ignored("the epsilon of a norm", epsilon, asked.norm_epsilon, std::move(evidence));
  }
  if (built.rope_theta && !IsNear(*built.rope_theta, asked.rope.theta, kThetaTolerance))
    return Ignored("the base of the rotary embedding", *built.rope_theta, asked.rope.theta,
                   std::move(evidence));
  if (!built.rope_frequencies.empty())
    return CheckFrequencies(built.rope_frequencies, asked, std::move(evidence));
  return CheckResult::Passed(Stage::kLoad, std::move(evidence));
}

}  // namespace bkm
