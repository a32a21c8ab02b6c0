// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/pair_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ErrorOf(std::vector<std::string> engines) {
  return std::string(TakeKind(engines).status().message());
}

TEST(TakeKindTest, ANamedKindIsTakenOffItsEngine) {
  std::vector<std::string> engines = {"verl-torchtitan@path:../my-verl", "git:verl@v0.8.0"};
  const auto kind = TakeKind(engines);
  ASSERT_TRUE(kind.ok()) << kind.status();
  EXPECT_EQ((*kind)->name, "verl-torchtitan");
  EXPECT_THAT(engines, ElementsAre("path:../my-verl", "git:verl@v0.8.0"));
}

TEST(TakeKindTest, AnAtSignOfARevisionNamesNoKind) {
  std::vector<std::string> engines = {"git:verl@v0.8.0"};
  EXPECT_TRUE(TakeKind(engines).ok());
  EXPECT_THAT(engines, ElementsAre("git:verl@v0.8.0"));
}

TEST(TakeKindTest, UnknownKindsAndEnginesWithoutACheckAreRefused) {
  EXPECT_THAT(ErrorOf({"verl-torchtitn@git:verl@main"}),
              HasSubstr("unknown kind 'verl-torchtitn': did you mean 'verl-torchtitan'?"));
  EXPECT_THAT(ErrorOf({"git:numpy@main"}),
              HasSubstr("--engine git:numpy@main: there is no static check"));
}

}  // namespace
}  // namespace bkm
