// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "harness/base/files.h"

namespace bkm {
namespace {

TEST(ClaimsTest, EachHasANameOfItsOwn) {
  std::set<std::string> names;
  for (const Claim* claim : Claims()) EXPECT_TRUE(names.insert(claim->name).second) << claim->name;
}

// docs/verdicts.md has exactly these claims. To change one, change its text beside its check and
// copy the row that this test prints.
TEST(ClaimsTest, TheDocumentHasTheRowOfEachAndNoOther) {
  const absl::StatusOr<std::string> text = ReadFile("docs/verdicts.md");
  ASSERT_TRUE(text.ok()) << text.status();
  const std::vector<std::string> lines = absl::StrSplit(*text, '\n');
  std::set<std::string> rows;
  std::copy_if(lines.begin(), lines.end(), std::inserter(rows, rows.end()),
               [](const std::string& line) { return absl::StartsWith(line, "| **"); });
  std::set<std::string> expected;
  for (const Claim* claim : Claims()) expected.insert(RowOf(*claim));
  EXPECT_EQ(rows, expected);
}

TEST(ClaimsTest, EachClaimFailsItsRungAndNoOther) {
  for (const Claim* claim : Claims()) {
    const Verdict verdict = {
        .findings = {{.claim = claim->name, .outcome = ClaimOutcome::kFailed}}};
    for (const Claim* other : Claims())
      EXPECT_EQ(FailsAt(verdict, other->rung), other->rung == claim->rung) << claim->name;
  }
  EXPECT_FALSE(
      FailsAt({.findings = {{.claim = "mask", .outcome = ClaimOutcome::kUnseen}}}, Stage::kMask));
}

}  // namespace
}  // namespace bkm
