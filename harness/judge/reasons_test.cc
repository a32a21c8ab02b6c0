// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/reasons.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"

namespace bkm {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(ReasonsTest, CodesAreDistinctKebabCase) {
  std::set<std::string> seen;
  for (const reason::Entry& entry : reason::All()) {
    EXPECT_THAT(std::string(entry.code), MatchesRegex("[a-z]+(-[a-z]+)*"));
    EXPECT_TRUE(seen.insert(entry.code).second) << entry.code;
  }
}

TEST(ReasonsTest, EveryCodeStandsInTheReadmeWithItsMeaning) {
  const std::string readme = *ReadFile("harness/judge/README.md");
  for (const reason::Entry& entry : reason::All())
    EXPECT_THAT(readme, HasSubstr(absl::StrCat("| `", entry.code, "` | ", entry.meaning, " |")));
}

}  // namespace
}  // namespace bkm
