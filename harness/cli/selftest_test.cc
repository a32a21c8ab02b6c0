// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Planted faults in real cells: each must be caught as golden/detection records.
// To accept a new table: tools/bkm selftest [--all] --accept.
#include <gtest/gtest.h>

#include "harness/testing/real_bkm.h"

namespace bkm {
namespace {

void ExpectAllCaught(std::vector<std::string> arguments, const std::string& name) {
  if (Mirrors().empty())
    GTEST_SKIP() << "no mirrors of verl and torchtitan: set BKM_GIT_MIRRORS to their folder";
  arguments.insert(arguments.begin(), "selftest");
  arguments.insert(arguments.end(), {"--quiet", "--out", RealRunFolder(name).string()});
  const absl::StatusOr<ProcessResult> result = RunRealBkm(arguments);
  ASSERT_TRUE(result.ok()) << result.status();
  if (result->exit_code == 2 && IsNoNetwork(result->err)) GTEST_SKIP() << result->err;
  EXPECT_EQ(result->exit_code, 0) << result->out << "\n" << result->err;
}

TEST(SelftestTest, SmokeEveryFaultIsCaughtAsListed) { ExpectAllCaught({}, "smoke"); }

TEST(SelftestTest, AllEveryFaultIsCaughtAsListed) { ExpectAllCaught({"--all"}, "all"); }

}  // namespace
}  // namespace bkm
