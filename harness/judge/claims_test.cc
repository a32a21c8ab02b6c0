// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "harness/base/files.h"
#include "harness/base/generated_file.h"

namespace bkm {
namespace {

TEST(ClaimsTest, EachHasANameOfItsOwn) {
  std::set<std::string> names;
  for (const Claim* claim : Claims()) EXPECT_TRUE(names.insert(claim->name).second) << claim->name;
}

bool IsRow(const std::string& line) { return absl::StartsWith(line, "| **"); }

// The document with the rows of today's claims: each in the place of its older row, a new one at
// the end of the table of its kind (what every cell claims, or what a matrix asks for).
std::string WithTheRowsOf(std::span<const Claim* const> claims, absl::string_view document) {
  std::vector<std::string> lines = absl::StrSplit(document, '\n');
  std::vector<std::string> missing;
  std::set<std::string> kept;
  for (const Claim* claim : claims) {
    const std::string start = absl::StrCat("| **", claim->name, "**");
    const auto older = std::find_if(lines.begin(), lines.end(), [&](const std::string& line) {
      return absl::StartsWith(line, start);
    });
    kept.insert(RowOf(*claim));
    if (older != lines.end()) {
      *older = RowOf(*claim);
      continue;
    }
    const bool is_asked = *claim->asked_by != '\0';
    const auto last = std::find_if(lines.rbegin(), lines.rend(), [&](const std::string& line) {
      return IsRow(line) && is_asked == absl::StrContains(line.substr(0, line.find(':')), "(`");
    });
    lines.insert(last.base(), RowOf(*claim));
  }
  std::erase_if(lines,
                [&](const std::string& line) { return IsRow(line) && !kept.contains(line); });
  return absl::StrJoin(lines, "\n");
}

TEST(ClaimsTest, TheDocumentHasTheRowOfEachAndNoOther) {
  constexpr char kDocument[] = "docs/verdicts.md";
  const absl::StatusOr<std::string> text = ReadFile(kDocument);
  ASSERT_TRUE(text.ok()) << text.status();
  ExpectGenerated(kDocument, *text, WithTheRowsOf(Claims(), *text), "//harness/judge:judge_test");
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
