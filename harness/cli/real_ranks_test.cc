// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Cells of two ranks of matrices/layouts.json and matrices/bkm.json through the real program:
// layouts that work, some that the engine cannot run or refuses, and three that are silently wrong.
// Needs the mirrors ($BKM_GIT_MIRRORS) and the package registry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "harness/base/json.h"
#include "harness/testing/real_run.h"

namespace bkm {
namespace {

using ::testing::HasSubstr;

constexpr char kTorchtitan[] =
    "engine=verl-torchtitan@pypi:verl==0.9.1,library=952427842,model=qwen3,documents=";
constexpr char kFsdp[] = "engine=verl-fsdp@pypi:verl==0.9.1,library=5.10.2,precision=fp32";

absl::StatusOr<RealRun> RunOf(const char* matrix, const std::vector<std::string>& filters,
                              const std::string& name) {
  return RealRun::Make(Filtered({matrix, "--no-controls"}, filters), name);
}

// "VERDICT at STAGE, REASON: MESSAGE".
std::string VerdictIn(const RealRun& run, const std::string& engine, const std::string& layout) {
  const RealRun::Fields fields = {{"engine", engine}, {"layout", layout}};
  return absl::StrCat(run.ReasonOf(fields), ": ", run.Cell(fields)["message"].get<std::string>());
}

class MoreShardedTableTest : public SharedRunTest<MoreShardedTableTest> {
 public:
  static absl::StatusOr<RealRun> MakeRun() {
    return RunOf("matrices/bkm.json",
                 {absl::StrCat(kFsdp, ",layout=dp_shard=2,documents=*262+29+1+1*")}, "table");
  }
};

class RealRanksTest : public SharedRunTest<RealRanksTest> {
 public:
  static absl::StatusOr<RealRun> MakeRun() {
    return RunOf("matrices/layouts.json",
                 {absl::StrCat(kTorchtitan, ",options=spmd_backend:*,layout=dp_replicate=2"),
                  absl::StrCat(kTorchtitan, ",options=spmd_backend:*,layout=tp=2"),
                  absl::StrCat(kFsdp, ",layout=ulysses=2")},
                 "layouts");
  }

 protected:
  static std::string Verdict(const std::string& engine, const std::string& layout) {
    return VerdictIn(run(), engine, layout);
  }
};

// Layouts that end before their ranks train, and one more that is right.
class MoreRealRanksTest : public SharedRunTest<MoreRealRanksTest> {
 public:
  static absl::StatusOr<RealRun> MakeRun() {
    return RunOf("matrices/layouts.json",
                 {absl::StrCat(kTorchtitan, ",options=spmd_backend:*,layout=cp=2"),
                  absl::StrCat(kTorchtitan, ",options=spmd_backend:*,layout=pp=2"),
                  absl::StrCat(kTorchtitan, ",options=,layout=dp_shard=2"),
                  absl::StrCat(kFsdp, ",options=strategy:*,layout=dp_shard=2"),
                  absl::StrCat(kFsdp, ",options=strategy:*,layout=dp_replicate=2"),
                  "engine=torchtitan,library=08da451,layout=cp=2"},
                 "more-layouts");
  }

 protected:
  static std::string Verdict(const std::string& engine, const std::string& layout) {
    return VerdictIn(run(), engine, layout);
  }
};

TEST_F(RealRanksTest, TensorParallelRanksComputeWhatOneRankComputes) {
  EXPECT_THAT(Verdict("verl-torchtitan", "tp=2"), HasSubstr("ok at golden"));
}

// The second rank's documents of step 2 have no token that counts.
TEST_F(MoreShardedTableTest, ShardedRanksComputeWhatOneRankComputes) {
  EXPECT_THAT(run().VerdictOf({{"engine", "verl-fsdp"}, {"layout", "dp_shard=2"}}),
              HasSubstr("ok at golden"));
}

TEST_F(RealRanksTest, ReplicasWhoseGradientsAreSummedAreWrong) {
  const std::string verdict = Verdict("verl-torchtitan", "dp_replicate=2");
  EXPECT_THAT(verdict, HasSubstr("wrong at golden, grad-norm-off"));
  EXPECT_THAT(verdict, HasSubstr("times the golden in every tensor: summed, not averaged, over a "
                                 "group of 2"));
}

// Its flat tensors are cut anywhere, also inside a weight.
TEST_F(MoreRealRanksTest, Fsdp1ComputesWhatOneRankComputes) {
  EXPECT_THAT(Verdict("verl-fsdp", "dp_shard=2"), HasSubstr("ok at golden"));
}

TEST_F(MoreRealRanksTest, Fsdp1ReducesNothingIfOneRankIsItsWholeGroup) {
  const std::string verdict = Verdict("verl-fsdp", "dp_replicate=2");
  EXPECT_THAT(verdict, HasSubstr("wrong at golden, ranks-differ"));
  EXPECT_THAT(verdict, HasSubstr("no collective reduced the gradients over the group of 2"));
}

TEST_F(RealRanksTest, ADocumentThatIsCutAcrossSequenceParallelRanksIsSeen) {
  EXPECT_THAT(Verdict("verl-fsdp", "ulysses=2"), HasSubstr("wrong at mask, mask-short"));
}

// In April 2026 a hook of torch, before the attention, gathered the keys of all ranks.
TEST_F(MoreRealRanksTest, KeysThatAHookGathersAreRead) {
  EXPECT_THAT(Verdict("torchtitan", "cp=2"), HasSubstr("ok at golden"));
}

TEST_F(MoreRealRanksTest, ALayoutThatTheEngineOffersAndCannotRunIsBroken) {
  EXPECT_THAT(Verdict("verl-torchtitan", "cp=2"),
              HasSubstr("broken at forward, lookup-failed: KeyError: 'positions'"));
  // The engine's default backend, spmd_types, wants a newer torch.
  EXPECT_THAT(Verdict("verl-torchtitan", "dp_shard=2"), HasSubstr("broken at construct"));
}

TEST_F(MoreRealRanksTest, ALayoutThatTheEngineRefusesClearlyIsRefused) {
  EXPECT_THAT(Verdict("verl-torchtitan", "pp=2"),
              HasSubstr("refused at construct, refused-option: NotImplementedError: Weight tying"));
}

}  // namespace
}  // namespace bkm
