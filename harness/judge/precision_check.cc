// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/precision_check.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/judge/case_file.h"
#include "harness/judge/claims.h"
#include "harness/judge/reasons.h"

namespace bkm {
namespace {

bool IsCalled(const ObservedKernels& kernels) {
  return std::any_of(kernels.calls.begin(), kernels.calls.end(),
                     [](int64_t calls) { return calls > 0; });
}

// Types that a step of this precision may multiply in. A router may compute in fp32 in a bf16
// model.
bool MayMultiplyIn(const std::string& type, const std::string& asked) {
  return type == asked || type == "fp32" || type == "float64";
}

// Of the products of a step in another type than it may have, or without any in the asked type.
std::optional<std::string> WrongProducts(const ObservedStep& step, const std::string& asked) {
  int64_t all = 0, others = 0;
  std::vector<std::string> types;
  for (const auto& [type, count] : step.products) {
    all += count;
    if (MayMultiplyIn(type, asked)) continue;
    others += count;
    types.push_back(type);
  }
  if (others > 0)
    return absl::StrCat(absl::StrJoin(types, " and "), " ran in ", others, " of ", all,
                        " matrix products");
  if (all > 0 && !step.products.contains(asked))
    return absl::StrCat("none of ", all, " matrix products ran in it");
  return std::nullopt;
}

}  // namespace

CheckResult CheckPrecision(const Observation& observation, const std::string& asked) {
  std::set<std::string> trained;
  std::set<int64_t> others;  // layers
  for (const ObservedKernels& kernels : observation.kernels) {
    if (!IsCalled(kernels) || kernels.precision.empty()) continue;
    trained.insert(kernels.precision);
    if (kernels.precision != asked) others.insert(kernels.layer);
  }
  const std::string& ran = observation.precision_ran;
  Json evidence = {{"asked", asked}, {"ran", ran}, {"trained", trained}};
  if (!ran.empty() && ran != asked) {
    return CheckResult::Failed(Stage::kForward, reason::kPrecisionIgnored,
                               absl::StrCat("asked for ", asked, ", but ", ran, " ran"),
                               std::move(evidence));
  }
  if (!others.empty()) {
    trained.erase(asked);
    return CheckResult::Failed(
        Stage::kForward, reason::kPrecisionIgnored,
        absl::StrCat("asked for ", asked, ", but ", absl::StrJoin(trained, " and "),
                     " ran in training (attention of layers ", absl::StrJoin(others, ", "), ")"),
        std::move(evidence));
  }
  for (size_t k = 0; k < observation.steps.size(); ++k) {
    const std::optional<std::string> wrong = WrongProducts(observation.steps[k], asked);
    if (!wrong) continue;
    evidence["products"] = observation.steps[k].products;
    return CheckResult::Failed(
        Stage::kForward, reason::kPrecisionIgnored,
        absl::StrCat("asked for ", asked, ", but ", *wrong, " of step ", k + 1),
        std::move(evidence));
  }
  if (ran.empty() || trained.empty()) {
    return CheckResult::Unseen(
        Stage::kForward,
        absl::StrCat("nobody saw in which precision the ",
                     ran.empty() ? "witness forward pass" : "training steps", " ran"),
        std::move(evidence));
  }
  for (size_t k = 0; k < observation.steps.size(); ++k) {
    if (!observation.steps[k].products.empty()) continue;
    return CheckResult::Unseen(
        Stage::kForward,
        absl::StrCat("nobody saw in which precision the matrix products of step ", k + 1, " ran"),
        std::move(evidence));
  }
  return CheckResult::Passed(Stage::kForward, std::move(evidence));
}

namespace {

CheckResult CheckPrecisionOf(const CaseFile& file) {
  return CheckPrecision(file.seen(), file.probe().precision);
}

}  // namespace

extern const Claim kPrecisionClaim = {
    .name = "precision",
    .rung = Stage::kForward,
    .says = "what computes is in the asked type, and the parameters are kept in fp32",
    .witness =
        "the type of each layer's attention in each training step and in the forward that "
        "trains nothing; the type of every matrix product that a step's backward passes go "
        "through; sampled parameters before and after each step",
    .cannot_see =
        "the type of what is neither attention nor a matrix product; a product in fp32 where "
        "bf16 was asked",
    .applies = OfFinishedCells,
    .check = CheckPrecisionOf,
};

}  // namespace bkm
