// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Cells of two ranks of matrices/layouts.json and matrices/bkm.json through the real program:
// layouts that work, some that the engine cannot run or refuses, and three that are silently wrong.
// Needs the mirrors ($BKM_GIT_MIRRORS) and the package registry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "harness/base/json.h"
#include "harness/testing/real_bkm.h"
#include "harness/testing/real_run.h"

namespace bkm {
namespace {

using ::testing::HasSubstr;

constexpr char kTorchtitan[] =
    "engine=verl-torchtitan@pypi:verl==0.9.1,library=952427842,model=qwen3,documents=";
constexpr char kFsdp[] = "engine=verl-fsdp@pypi:verl==0.9.1,library=5.10.2,precision=fp32";

class RealRanksTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (Mirrors().empty()) return;
    layouts_ = Run("matrices/layouts.json",
                   {absl::StrCat(kTorchtitan, ",options=spmd_backend:*,layout=dp_replicate=2"),
                    absl::StrCat(kTorchtitan, ",options=spmd_backend:*,layout=tp=2"),
                    absl::StrCat(kTorchtitan, ",options=spmd_backend:*,layout=?p=2"),
                    absl::StrCat(kTorchtitan, ",options=,layout=dp_shard=2"),
                    absl::StrCat(kFsdp, ",layout=ulysses=2"),
                    absl::StrCat(kFsdp, ",options=strategy:*,layout=dp_shard=2"),
                    absl::StrCat(kFsdp, ",options=strategy:*,layout=dp_replicate=2")},
                   "layouts");
    table_ = Run("matrices/bkm.json",
                 {absl::StrCat(kFsdp, ",layout=dp_shard=2,documents=*262+29+1+1*")}, "table");
  }
  static void TearDownTestSuite() {
    delete layouts_;
    delete table_;
  }

  void SetUp() override {
    for (const absl::StatusOr<RealRun>* run : {layouts_, table_}) {
      if (run == nullptr)
        GTEST_SKIP() << "no mirrors of verl and torchtitan: set BKM_GIT_MIRRORS to their folder";
      if (IsNoNetwork(run->status())) GTEST_SKIP() << run->status();
      ASSERT_TRUE(run->ok()) << run->status();
    }
  }

  static absl::StatusOr<RealRun>* Run(const char* matrix, const std::vector<std::string>& filters,
                                      const std::string& name) {
    std::vector<std::string> arguments = {matrix, "--no-controls"};
    for (const std::string& filter : filters)
      arguments.insert(arguments.end(), {"--filter", filter});
    return new absl::StatusOr<RealRun>(RealRun::Make(std::move(arguments), name));
  }

  // "VERDICT at STAGE, REASON: MESSAGE".
  static std::string Verdict(const std::string& engine, const std::string& layout) {
    const RealRun::Fields fields = {{"engine", engine}, {"layout", layout}};
    return absl::StrCat((*layouts_)->ReasonOf(fields), ": ",
                        (*layouts_)->Cell(fields)["message"].get<std::string>());
  }

  static absl::StatusOr<RealRun>* layouts_;
  static absl::StatusOr<RealRun>* table_;
};
absl::StatusOr<RealRun>* RealRanksTest::layouts_ = nullptr;
absl::StatusOr<RealRun>* RealRanksTest::table_ = nullptr;

TEST_F(RealRanksTest, TensorParallelAndShardedRanksComputeWhatOneRankComputes) {
  EXPECT_THAT(Verdict("verl-torchtitan", "tp=2"), HasSubstr("ok at golden"));
  // The second rank's documents of step 2 have no token that counts.
  EXPECT_THAT((*table_)->VerdictOf({{"engine", "verl-fsdp"}, {"layout", "dp_shard=2"}}),
              HasSubstr("ok at golden"));
}

TEST_F(RealRanksTest, ReplicasWhoseGradientsAreSummedAreWrong) {
  const std::string verdict = Verdict("verl-torchtitan", "dp_replicate=2");
  EXPECT_THAT(verdict, HasSubstr("wrong at golden, grad-norm-off"));
  EXPECT_THAT(verdict, HasSubstr("times the golden in every tensor: summed, not averaged, over a "
                                 "group of 2"));
}

// Its flat tensors are cut anywhere, also inside a weight.
TEST_F(RealRanksTest, Fsdp1ComputesWhatOneRankComputesUnlessOneRankIsItsWholeGroup) {
  EXPECT_THAT(Verdict("verl-fsdp", "dp_shard=2"), HasSubstr("ok at golden"));
  const std::string verdict = Verdict("verl-fsdp", "dp_replicate=2");
  EXPECT_THAT(verdict, HasSubstr("wrong at golden, ranks-differ"));
  EXPECT_THAT(verdict, HasSubstr("no collective reduced the gradients over the group of 2"));
}

TEST_F(RealRanksTest, ADocumentThatIsCutAcrossSequenceParallelRanksIsSeen) {
  EXPECT_THAT(Verdict("verl-fsdp", "ulysses=2"), HasSubstr("wrong at mask, mask-short"));
}

TEST_F(RealRanksTest, ALayoutThatTheEngineOffersAndCannotRunIsBroken) {
  EXPECT_THAT(Verdict("verl-torchtitan", "cp=2"),
              HasSubstr("broken at forward, lookup-failed: KeyError: 'positions'"));
  // The engine's default backend, spmd_types, wants a newer torch.
  EXPECT_THAT(Verdict("verl-torchtitan", "dp_shard=2"), HasSubstr("broken at construct"));
}

TEST_F(RealRanksTest, ALayoutThatTheEngineRefusesClearlyIsRefused) {
  EXPECT_THAT(Verdict("verl-torchtitan", "pp=2"),
              HasSubstr("refused at construct, refused-option: NotImplementedError: Weight tying"));
}

}  // namespace
}  // namespace bkm
