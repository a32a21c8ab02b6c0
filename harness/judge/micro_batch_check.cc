// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/micro_batch_check.h"

#include "absl/strings/str_cat.h"
#include "harness/judge/case_file.h"
#include "harness/judge/claims.h"
#include "harness/judge/reasons.h"
#include "harness/model/dealing.h"

namespace bkm {

CheckResult CheckMicroBatches(const Probe& asked, std::span<const ObservedStep> reported) {
  Json evidence = {{"asked", asked.micro_batches}};
  for (size_t k = 0; k < reported.size(); ++k) {
    const int64_t expected = MicroBatchesOf(asked, std::ssize(reported[k].documents));
    if (!reported[k].forwards || *reported[k].forwards == expected) continue;
    evidence["ran"] = *reported[k].forwards;
    return CheckResult::Failed(Stage::kForward, reason::kOverrideIgnored,
                               absl::StrCat("asked for ", expected, " micro-batches, but step ",
                                            k + 1, " ran ", *reported[k].forwards),
                               std::move(evidence));
  }
  for (size_t k = 0; k < reported.size(); ++k) {
    if (!reported[k].forwards)
      return CheckResult::Unseen(Stage::kForward,
                                 absl::StrCat("nobody counted the forward passes of step ", k + 1),
                                 std::move(evidence));
  }
  return CheckResult::Passed(Stage::kForward, std::move(evidence));
}

namespace {

CheckResult CheckMicroBatchesOf(const CaseFile& file) {
  return CheckMicroBatches(file.probe(), file.seen().steps);
}

}  // namespace

extern const Claim kMicroBatchesClaim = {
    .name = "micro_batches",
    .rung = Stage::kForward,
    .says = "each step was split as asked",
    .witness = "how many forward passes each training step had",
    .cannot_see = "how the documents were distributed to them, which the numbers show",
    .applies = OfFinishedCells,
    .check = CheckMicroBatchesOf,
};

}  // namespace bkm
