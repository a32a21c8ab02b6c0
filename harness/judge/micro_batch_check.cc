// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/micro_batch_check.h"

#include "absl/strings/str_cat.h"
#include "harness/judge/reasons.h"

namespace bkm {

CheckResult CheckMicroBatches(const Probe& asked, std::span<const ObservedStep> reported) {
  Json evidence = {{"asked", asked.micro_batches}};
  for (size_t k = 0; k < reported.size(); ++k) {
    if (!reported[k].forwards || *reported[k].forwards == asked.micro_batches) continue;
    evidence["ran"] = *reported[k].forwards;
    return CheckResult::Failed(
        Stage::kForward, reason::kOverrideIgnored,
        absl::StrCat("asked for ", asked.micro_batches, " micro-batches, but step ", k + 1, " ran ",
                     *reported[k].forwards),
        std::move(evidence));
  }
  return CheckResult::Passed(Stage::kForward, std::move(evidence));
}

}  // namespace bkm
