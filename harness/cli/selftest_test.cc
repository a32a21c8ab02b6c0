// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Planted faults in real cells: each must be caught as golden/detection records. What is harmless
// must stay green. Mutants of a real cell: each is made, run and found for the listed reason.
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

// Of one commit: other sources have other mutants.
constexpr char kPinnedPair[] = R"({"schema": 1, "name": "pinned", "groups": [{
  "engine": {"kind": "torchtitan"}, "library": "git:torchtitan@5b7089939", "runtime": "cpu",
  "probe": {"model": "qwen3", "attention": "flex", "precision": "bf16"}}]})";

// "torchtitan/models/common/rope.py, drop-term: killed, wrong at golden, log-probs-off"
std::vector<std::string> MutantsOf(const Json& pair) {
  std::vector<std::string> mutants;
  for (const Json& mutant : pair["mutants"])
    mutants.push_back(absl::StrCat(TextOf(mutant, "file"), ", ", TextOf(mutant, "operator"), ": ",
                                   TextOf(mutant, "outcome"), ", ", TextOf(mutant, "verdict")));
  return mutants;
}

// The rate is a figure, not a test.
TEST(SelftestTest, SmokeMutantsOfKnownSourcesAreKilledForTheirReasons) {
  if (Mirrors().empty())
    GTEST_SKIP() << "no mirrors of verl and torchtitan: set BKM_GIT_MIRRORS to their folder";
  const std::string matrix = testing::TempDir() + "/pinned.json";
  ASSERT_TRUE(WriteFile(matrix, kPinnedPair).ok());
  const std::vector<std::string> arguments = {
      "selftest", "--mutate", "--mutants", "5",      "--seed", "2",
      "--matrix", matrix,     "--quiet",   "--json", "--out",  RealRunFolder("mutants")};
  const absl::StatusOr<ProcessResult> result = RunRealBkm(arguments);
  ASSERT_TRUE(result.ok()) << result.status();
  if (result->exit_code == 2 && IsNoNetwork(result->err)) GTEST_SKIP() << result->err;
  ASSERT_LE(result->exit_code, 1) << result->err;
  const absl::StatusOr<Json> json = ParseJson(result->out, "stdout");
  ASSERT_TRUE(json.ok()) << json.status();
  ASSERT_EQ((*json)["pairs"].size(), 1u);
  const Json& pair = (*json)["pairs"][0];
  EXPECT_THAT(
      MutantsOf(pair),
      ElementsAre(
          "torchtitan/models/common/rope.py, stale-attribute: bit-identical, ok",
          "torchtitan/models/common/rope.py, drop-term: killed, wrong at golden, log-probs-off",
          "torchtitan/models/common/rope.py, swap-arithmetic: killed, wrong at golden, "
          "log-probs-off",
          "torchtitan/models/common/rope.py, skip-branch: crashed, broken at forward, shape-error",
          "torchtitan/models/common/attention.py, wrong-axis: killed, wrong at mask, mask-leak"));
  for (const Json& mutant : pair["mutants"]) EXPECT_NE(mutant["diff"], "") << mutant;
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
