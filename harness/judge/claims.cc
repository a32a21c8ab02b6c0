// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/claims.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "harness/judge/case_file.h"

namespace bkm {

extern const Claim kBackendClaim, kRanksClaim, kMaskClaim, kArgumentsClaim, kPrecisionClaim,
    kLoadClaim, kBuffersClaim, kModelClaim, kMicroBatchesClaim, kOptimizerClaim, kNumbersClaim,
    kExportClaim, kResumeClaim, kDataClaim, kExpertBalanceClaim, kShardingClaim;

namespace {

// Other data, and weights that were not loaded, explain numbers that are off.
constexpr const Claim* kClaims[] = {
    &kBackendClaim,       &kShardingClaim,  &kDataClaim,         &kRanksClaim,
    &kMaskClaim,          &kArgumentsClaim, &kPrecisionClaim,    &kLoadClaim,
    &kBuffersClaim,       &kModelClaim,     &kMicroBatchesClaim, &kOptimizerClaim,
    &kExpertBalanceClaim, &kNumbersClaim,   &kExportClaim,       &kResumeClaim,
};

}  // namespace

std::span<const Claim* const> Claims() { return kClaims; }

bool FailsAt(const Verdict& verdict, Stage rung) {
  return std::any_of(std::begin(kClaims), std::end(kClaims), [&](const Claim* claim) {
    const Finding* finding = verdict.Find(claim->name);
    return claim->rung == rung && finding != nullptr && finding->outcome == ClaimOutcome::kFailed;
  });
}

bool OfFinishedCells(const CaseFile& file) { return file.has_finished; }

std::string RowOf(const Claim& claim) {
  const std::string asked = claim.asked_by;
  return absl::StrCat("| **", claim.name, "**",
                      asked.empty() ? "" : absl::StrCat(" (`", asked, "`)"), ": ", claim.says,
                      " | ", claim.witness, " | ", claim.cannot_see, " |");
}

}  // namespace bkm
