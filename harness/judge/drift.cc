// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/drift.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "harness/judge/numbers_check.h"
#include "harness/numerics/error_measures.h"

namespace bkm {
namespace {

constexpr std::array<absl::string_view, 3> kDriftNames = {"bit-equal", "within-floor", "real"};
constexpr double kInfinite = std::numeric_limits<double>::infinity();

bool SameBits(std::span<const double> a, std::span<const double> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
    return std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y);
  });
}

bool SameBits(const SampledTensor& a, const SampledTensor& b) {
  return SameBits(a.gradient, b.gradient) && SameBits(a.before, b.before) &&
         SameBits(a.after, b.after) && SameBits(a.norms, b.norms);
}

bool SameBits(const StepTensors& a, const StepTensors& b) {
  const auto same = [](const auto& x, const auto& y) {
    return x.first == y.first && SameBits(x.second, y.second);
  };
  return SameBits(a.log_probs, b.log_probs) &&
         std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(), b.tensors.end(), same);
}

class DriftComparison {
 public:
  void Note(double multiple, std::string where) {
    if (multiple <= drift_.multiple) return;
    drift_.multiple = multiple;
    drift_.where = std::move(where);
  }
  Drift Finish() const {
    Drift drift = drift_;
    drift.kind = drift.multiple > kFloorMultiple ? DriftClass::kReal : DriftClass::kWithinFloor;
    return drift;
  }

 private:
  Drift drift_;
};

void CompareLogProbs(size_t k, const StepTensors& before, const StepTensors& now,
                     const FloorStep& floor, const PackedBatch& batch, DriftComparison& worst) {
  const std::string where = absl::StrCat("log-probs in step ", k + 1);
  if (before.log_probs.size() != now.log_probs.size() ||
      before.log_probs.size() != batch.input_ids.size()) {
    return worst.Note(kInfinite, where);
  }
  double sum = 0;
  const std::vector<int64_t> judged = batch.JudgedPositions();
  for (const int64_t t : judged) {
    const double a = before.log_probs[t], b = now.log_probs[t];
    const bool same = std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
    if (!same && !(std::isfinite(a) && std::isfinite(b))) {
      return worst.Note(kInfinite, where);
    }
    if (!same) sum += std::abs(a - b);
  }
  worst.Note(InFloors(sum / static_cast<double>(judged.size()), floor.reports.log_probs.mean),
             where);
}

void CompareGradients(size_t k, const StepTensors& before, const StepTensors& now,
                      const FloorStep& floor, DriftComparison& worst) {
  const auto where = [&](const std::string& name) {
    return absl::StrCat("gradient of ", name, " in step ", k + 1);
  };
  const double norm_of_all = NormOfAll(before);
  for (const auto& [name, a] : before.tensors) {
    const auto b = now.tensors.find(name);
    if (b == now.tensors.end()) {
      worst.Note(kInfinite, where(name));
      continue;
    }
    if (SameBits(a.gradient, b->second.gradient)) continue;
    if (a.norms[0] == 0 || b->second.norms[0] == 0) {
      const double error = ShareOf(std::abs(b->second.norms[0] - a.norms[0]), norm_of_all);
      worst.Note(InFloors(error, floor.ShareFor(name)), where(name));
      continue;
    }
    const auto allowed = floor.gradients.find(name);
    const absl::StatusOr<double> error = RelativeNormError(b->second.gradient, a.gradient);
    // A different size or a number that is not finite has no distance.
    const bool comparable = error.ok() && allowed != floor.gradients.end();
    worst.Note(comparable ? InFloors(*error, std::max(allowed->second, kNormReduction)) : kInfinite,
               where(name));
  }
  for (const auto& [name, b] : now.tensors) {
    if (!before.tensors.contains(name)) worst.Note(kInfinite, where(name));
  }
}

}  // namespace

absl::string_view Name(DriftClass kind) { return kDriftNames[static_cast<size_t>(kind)]; }

absl::StatusOr<Drift> CompareRuns(std::span<const StepTensors> before,
                                  std::span<const StepTensors> now,
                                  std::span<const FloorStep> floor,
                                  std::span<const PackedBatch> batches) {
  if (before.size() != now.size())
    return Drift{DriftClass::kReal, kInfinite, "the number of steps"};
  const bool same = std::equal(before.begin(), before.end(), now.begin(),
                               [](const auto& a, const auto& b) { return SameBits(a, b); });
  if (same) return Drift{};
  if (floor.size() < now.size() || batches.size() < now.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the floor has ", floor.size(), " steps, the runs ", now.size()));
  }
  DriftComparison worst;
  for (size_t k = 0; k < now.size(); ++k) {
    CompareLogProbs(k, before[k], now[k], floor[k], batches[k], worst);
    CompareGradients(k, before[k], now[k], floor[k], worst);
  }
  return worst.Finish();
}

}  // namespace bkm
