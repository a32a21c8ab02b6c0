// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/claims.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace bkm {
namespace {

TEST(ClaimsTest, EachHasAName) {
  std::set<std::string> names;
  for (const Claim& claim : Claims()) EXPECT_TRUE(names.insert(claim.name).second) << claim.name;
}

TEST(ClaimsTest, EachClaimFailsItsRungAndNoOther) {
  for (const Claim& claim : Claims()) {
    const Verdict verdict = {.findings = {{.claim = claim.name, .outcome = ClaimOutcome::kFailed}}};
    for (const Claim& other : Claims())
      EXPECT_EQ(FailsAt(verdict, other.rung), other.rung == claim.rung) << claim.name;
  }
  EXPECT_FALSE(
      FailsAt({.findings = {{.claim = "mask", .outcome = ClaimOutcome::kUnseen}}}, Stage::kMask));
}

}  // namespace
}  // namespace bkm
