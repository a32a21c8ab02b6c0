// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/precision_check.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/judge/reasons.h"

namespace bkm {
namespace {

bool IsCalled(const ObservedKernels& kernels) {
  return std::any_of(kernels.calls.begin(), kernels.calls.end(),
                     [](int64_t calls) { return calls > 0; });
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
  if (ran.empty() || trained.empty()) {
    return CheckResult::Unseen(
        Stage::kForward,
        absl::StrCat("nobody saw in which precision the ",
                     ran.empty() ? "witness forward pass" : "training steps", " ran"),
        std::move(evidence));
  }
  return CheckResult::Passed(Stage::kForward, std::move(evidence));
}

}  // namespace bkm
