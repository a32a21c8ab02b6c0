// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/claims.h"

#include <algorithm>

namespace bkm {
namespace {

constexpr Claim kClaims[] = {
    {"backend", Stage::kBackend},
    {"ranks", Stage::kGolden},
    {"mask", Stage::kMask},
    {"arguments", Stage::kMask},
    {"precision", Stage::kForward},
    {"load", Stage::kLoad},
    {"buffers", Stage::kLoad},
    {"model", Stage::kLoad},
    {"micro_batches", Stage::kForward},
    {"optimizer", Stage::kStep},
    {"numbers", Stage::kGolden},
    {"export", Stage::kExport},
    {"resume", Stage::kResume},
};

}  // namespace

std::span<const Claim> Claims() { return kClaims; }

bool FailsAt(const Verdict& verdict, Stage rung) {
  return std::any_of(std::begin(kClaims), std::end(kClaims), [&](const Claim& claim) {
    const Finding* finding = verdict.Find(claim.name);
    return claim.rung == rung && finding != nullptr && finding->outcome == ClaimOutcome::kFailed;
  });
}

}  // namespace bkm
