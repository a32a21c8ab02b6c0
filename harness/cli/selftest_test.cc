// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Planted faults in real cells: each must be caught as golden/detection records. What is harmless
// must stay green. Mutants of a real cell: each is made, run and found for the listed reason.
// To accept a new table: tools/bkm selftest [--all] --accept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/json_facts.h"
#include "harness/testing/real_bkm.h"

namespace bkm {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// What `bkm selftest ARGUMENTS` found; exit code 0 means that the catalogue and golden/detection
// say the same.
void Find(std::vector<std::string> arguments, const std::string& name, Json& found) {
  if (Mirrors().empty())
    GTEST_SKIP() << "no mirrors of verl and torchtitan: set BKM_GIT_MIRRORS to their folder";
  arguments.insert(arguments.begin(), "selftest");
  arguments.insert(arguments.end(), {"--quiet", "--json", "--out", RealRunFolder(name).string()});
  const absl::StatusOr<ProcessResult> result = RunRealBkm(arguments);
  ASSERT_TRUE(result.ok()) << result.status();
  if (result->exit_code == 2 && IsNoNetwork(result->err)) GTEST_SKIP() << result->err;
  EXPECT_EQ(result->exit_code, 0) << result->out << "\n" << result->err;
  const absl::StatusOr<Json> json = ParseJson(result->out, "stdout");
  ASSERT_TRUE(json.ok()) << json.status() << "\n" << result->err;
  found = (*json)["detections"];
}

// "mask-none: wrong, mask, mask-leak"
std::vector<std::string> PlantedOf(const Json& found) {
  std::vector<std::string> planted;
  for (const Json& row : found) {
    const std::string fault = TextOf(row, "fault");
    if (fault.empty()) continue;
    planted.push_back(absl::StrCat(fault, ": ", TextOf(row, "verdict")));
    for (const char* key : {"stage", "reason"}) {
      if (!TextOf(row, "reason").empty()) absl::StrAppend(&planted.back(), ", ", TextOf(row, key));
    }
  }
  return planted;
}

std::vector<std::string> FaultFreeOf(const Json& found) {
  std::vector<std::string> verdicts;
  for (const Json& row : found) {
    if (TextOf(row, "fault").empty()) verdicts.push_back(TextOf(row, "verdict"));
  }
  return verdicts;
}

TEST(SelftestTest, SmokeEveryFaultIsCaughtForItsReason) {
  Json found;
  Find({}, "smoke", found);
  if (IsSkipped()) return;
  EXPECT_THAT(PlantedOf(found),
              UnorderedElementsAre("drop-mask: wrong, mask, mask-leak",
                                   "skip-load: wrong, golden, weights-not-loaded",
                                   "norm-epsilon-off: wrong, load, config-ignored",
                                   "other-backend: wrong, backend, override-ignored",
                                   "kernel-falls-back: wrong, backend, other-backend-ran",
                                   "loss-mask-shifted: wrong, golden, loss-off",
                                   "gradient-zeroed: wrong, backward, gradients-off",
                                   "betas-wrong-silently: wrong, step, update-off",
                                   "heads-transposed: wrong, golden, log-probs-off",
                                   "mask-none: wrong, mask, mask-leak",
                                   "gradient-accumulated-twice: wrong, golden, grad-norm-off",
                                   "buffer-not-loaded: wrong, golden, weights-not-loaded",
                                   "flash-softcap-dropped: wrong, mask, kernel-arguments"));
  EXPECT_THAT(FaultFreeOf(found), AllOf(Not(IsEmpty()), Each("ok")));
  // Planted cells can run on another machine, one with a GPU for example.
  const absl::StatusOr<ProcessResult> packed =
      RunRealBkm({"pack", RealRunFolder("smoke"), "--out", testing::TempDir() + "/smoke.bkm"});
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_THAT(packed->out, HasSubstr(absl::StrCat(found.size(), " cells in "))) << packed->err;
}

// A right pair stays green, however its engine and library go about it.
TEST(SelftestTest, SmokeNothingHarmlessIsRed) {
  Json found;
  Find({"--harmless"}, "harmless", found);
  if (IsSkipped()) return;
  EXPECT_THAT(PlantedOf(found), UnorderedElementsAre("row-padded: ok", "projections-fused: ok",
                                                     "documents-reversed: ok"));
  EXPECT_THAT(FaultFreeOf(found), AllOf(Not(IsEmpty()), Each("ok")));
}

TEST(SelftestTest, AllEveryFaultIsPlantedAndCaughtAsListed) {
  Json found;
  Find({"--all"}, "all", found);
  if (IsSkipped()) return;
  const absl::StatusOr<Json> catalogue = ReadJsonFile("harness/selftest/catalogue.json");
  ASSERT_TRUE(catalogue.ok()) << catalogue.status();
  std::set<std::string> planted;
  for (const Json& row : found) planted.insert(TextOf(row, "fault"));
  for (const Json& fault : (*catalogue)["faults"])
    EXPECT_TRUE(planted.contains(TextOf(fault, "id"))) << fault["id"] << " was planted nowhere";
  EXPECT_THAT(FaultFreeOf(found), AllOf(Not(IsEmpty()), Each("ok")));
}

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
TEST(SelftestTest, AllMutantsOfKnownSourcesAreKilledForTheirReasons) {
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
