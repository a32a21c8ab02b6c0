// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Cells of two ranks of matrices/bkm.json through the real program: layouts that work, one that the
// engine cannot run, and two that are silently wrong. Needs the mirrors ($BKM_GIT_MIRRORS) and the
// package registry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/json.h"
#include "harness/testing/real_bkm.h"

namespace bkm {
namespace {

using ::testing::HasSubstr;

constexpr char kTorchtitan[] = "engine=verl-torchtitan@pypi:verl==0.9.1,library=952427842";
constexpr char kFsdp[] = "engine=verl-fsdp@pypi:verl==0.9.1,library=5.10.2,precision=fp32";

std::vector<std::string> Filters() {
  return {absl::StrCat(kTorchtitan, ",options=spmd_backend:*,layout=dp_replicate=2"),
          absl::StrCat(kTorchtitan, ",options=spmd_backend:*,layout=tp=2"),
          absl::StrCat(kTorchtitan, ",options=spmd_backend:*,layout=cp=2"),
          absl::StrCat(kTorchtitan, ",options=,layout=tp=2"),
          absl::StrCat(kFsdp, ",layout=dp_shard=2,documents=*262+29+1+1*"),
          absl::StrCat(kFsdp, ",layout=ulysses=2")};
}

class RealRanksTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (Mirrors().empty()) return;
    std::vector<std::string> arguments = {"matrices/bkm.json", "--no-controls"};
    for (const std::string& filter : Filters())
      arguments.insert(arguments.end(), {"--filter", filter});
    run_ = new absl::StatusOr<Json>(RunRealCells(std::move(arguments), "ranks"));
  }
  static void TearDownTestSuite() { delete run_; }

  void SetUp() override {
    if (run_ == nullptr)
      GTEST_SKIP() << "no mirrors of verl and torchtitan: set BKM_GIT_MIRRORS to their folder";
    if (IsNoNetwork(run_->status())) GTEST_SKIP() << run_->status();
    ASSERT_TRUE(run_->ok()) << run_->status();
  }

  // "VERDICT at STAGE, REASON: MESSAGE" of the cell whose id and a line end contain both parts.
  static std::string Verdict(absl::string_view engine, absl::string_view layout) {
    for (const Json& cell : (**run_)["cells"]) {
      const std::string id = absl::StrCat(cell["id"].get<std::string>(), "\n");
      if (!absl::StrContains(id, engine) || !absl::StrContains(id, layout)) continue;
      return absl::StrCat(cell["verdict"].get<std::string>(), " at ",
                          cell["stage"].get<std::string>(), ", ", cell["reason"].get<std::string>(),
                          ": ", cell["message"].get<std::string>());
    }
    return "no such cell";
  }

  static absl::StatusOr<Json>* run_;
};
absl::StatusOr<Json>* RealRanksTest::run_ = nullptr;

TEST_F(RealRanksTest, TensorParallelAndShardedRanksComputeWhatOneRankComputes) {
  EXPECT_THAT(Verdict("verl-torchtitan", "layout=tp=2,options"), HasSubstr("ok at golden"));
  // The second rank's documents of step 2 have no token that counts.
  EXPECT_THAT(Verdict("verl-fsdp", "layout=dp_shard=2"), HasSubstr("ok at golden"));
}

TEST_F(RealRanksTest, ReplicasWhoseGradientsAreSummedAreWrong) {
  const std::string verdict = Verdict("verl-torchtitan", "layout=dp_replicate=2");
  EXPECT_THAT(verdict, HasSubstr("wrong at golden, grad-norm-off"));
  EXPECT_THAT(verdict, HasSubstr("times the golden in every tensor: summed, not averaged, over a "
                                 "group of 2"));
}

TEST_F(RealRanksTest, ADocumentThatIsCutAcrossSequenceParallelRanksIsSeen) {
  EXPECT_THAT(Verdict("verl-fsdp", "layout=ulysses=2"), HasSubstr("wrong at mask, mask-short"));
}

TEST_F(RealRanksTest, ALayoutThatTheEngineOffersAndCannotRunIsBroken) {
  EXPECT_THAT(Verdict("verl-torchtitan", "layout=cp=2"),
              HasSubstr("broken at forward, lookup-failed: KeyError: 'positions'"));
  // Its default backend, spmd_types, wants a newer torch.
  EXPECT_THAT(Verdict("verl-torchtitan", "layout=tp=2\n"), HasSubstr("broken at construct"));
}

}  // namespace
}  // namespace bkm
