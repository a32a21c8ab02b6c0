// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Planted faults in real cells: each must be caught as golden/detection records. What is harmless
// must stay green. Mutants of real cells: each is made, run and counted.
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

// A right pair stays green, however its engine and library go about it.
TEST(SelftestTest, SmokeNothingHarmlessIsRed) { ExpectAllCaught({"--harmless"}, "harmless"); }

TEST(SelftestTest, AllEveryFaultIsCaughtAsListed) { ExpectAllCaught({"--all"}, "all"); }

// The rate is a figure, not a test: other sources have other survivors.
TEST(SelftestTest, SmokeMutantsRunAndAreCounted) {
  if (Mirrors().empty())
    GTEST_SKIP() << "no mirrors of verl and torchtitan: set BKM_GIT_MIRRORS to their folder";
  const std::vector<std::string> arguments = {
      "selftest",    "--mutate",   "--mutants", "4",
      "--engine",    "torchtitan", "--model",   "qwen3",
      "--attention", "flex",       "--quiet",   "--json",
      "--seed",      "3",          "--out",     RealRunFolder("mutants")};
  const absl::StatusOr<ProcessResult> result = RunRealBkm(arguments);
  ASSERT_TRUE(result.ok()) << result.status();
  if (result->exit_code == 2 && IsNoNetwork(result->err)) GTEST_SKIP() << result->err;
  ASSERT_LE(result->exit_code, 1) << result->err;
  const absl::StatusOr<Json> json = ParseJson(result->out, "stdout");
  ASSERT_TRUE(json.ok()) << json.status();
  ASSERT_EQ((*json)["pairs"].size(), 1u);
  const Json& pair = (*json)["pairs"][0];
  ASSERT_EQ(pair["mutants"].size(), 4u) << result->out;
  for (const Json& mutant : pair["mutants"]) {
    EXPECT_NE(mutant["outcome"], "not measured") << mutant;
    EXPECT_NE(mutant["diff"], "") << mutant;
  }
  // What the lines are for: mutants in code that runs in a training step.
  EXPECT_GT(pair["possible"], 500);
  // A run that continues measures nothing again.
  const absl::StatusOr<ProcessResult> again = RunRealBkm(arguments);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->out, result->out);
  EXPECT_EQ(again->exit_code, result->exit_code);
}

}  // namespace
}  // namespace bkm
