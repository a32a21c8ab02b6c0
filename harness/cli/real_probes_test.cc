// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Some cells of matrices/probes.json through the real program: variants of the training step, and
// the faults that they reveal in real engines. RealProbesTest is for every change; the cells of
// MoreRealProbesTest need further runtimes, goldens and floors. Needs the mirrors
// ($BKM_GIT_MIRRORS) and the package registry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/json.h"
#include "harness/testing/real_run.h"

namespace bkm {
namespace {

using ::testing::HasSubstr;

constexpr char kTorchtitanEngine[] = "engine=v0.8.0,library=baba6d82e,attention=flex";
constexpr char kFsdpEngine[] = "engine=verl-fsdp@pypi:verl==0.9.1,precision=fp32,attention=sdpa";
constexpr char kGemma[] = "engine=transformers,library=pypi:transformers==5.10.2,model=gemma2";

std::string With(const char* cell, const char* rest) { return absl::StrCat(cell, ",", rest); }

absl::StatusOr<RealRun> RunOf(const std::vector<std::string>& filters, const std::string& name) {
  return RealRun::Make(Filtered({"matrices/probes.json", "--no-controls"}, filters), name);
}

// The cells of a run, each named by parts of its id.
template <typename Suite>
class ProbesRun : public SharedRunTest<Suite> {
 protected:
  // The only cell whose id contains all of these parts.
  static Json Cell(const std::vector<std::string>& parts) {
    Json found;
    int count = 0;
    for (const Json& cell : SharedRunTest<Suite>::run().json()["cells"]) {
      if (cell["role"] != "subject") continue;
      const std::string id = cell["id"];
      const bool fits = std::all_of(parts.begin(), parts.end(), [&](const std::string& part) {
        return absl::StrContains(id, part);
      });
      if (!fits) continue;
      found = cell;
      ++count;
    }
    if (count == 1) return found;
    return {{"verdict", absl::StrCat(count, " such cells")},
            {"stage", ""},
            {"reason", ""},
            {"message", ""}};
  }

  static std::string VerdictOf(const std::vector<std::string>& parts) {
    const Json cell = Cell(parts);
    const std::string reason = cell["reason"];
    return absl::StrCat(cell["verdict"].get<std::string>(), " at ",
                        cell["stage"].get<std::string>(), reason.empty() ? "" : ", ", reason);
  }
};

class RealProbesTest : public ProbesRun<RealProbesTest> {
 public:
  static absl::StatusOr<RealRun> MakeRun() {
    return RunOf(
        {With(kTorchtitanEngine, "micro_batches=2"), With(kTorchtitanEngine, "input=padded"),
         With(kFsdpEngine, "input=padded,micro_batches=2"), With(kFsdpEngine, "head=value"),
         With(kFsdpEngine, "library=pypi:transformers==5.10.2,resume_checkpoint=true"),
         "engine=verl-fsdp*,attention=flash_attention_2,layout=ulysses=2",
         With(kGemma, "attention=flash_attention_2,input=packed+tail+mask"),
         With(kGemma, "attention=flash_attention_2,input=packed+rows+lengths"),
         "engine=torchtitan,attention=flex_flash"},
        "probes");
  }
};

class MoreRealProbesTest : public ProbesRun<MoreRealProbesTest> {
 public:
  static absl::StatusOr<RealRun> MakeRun() {
    return RunOf(
        {With(kTorchtitanEngine, "leftover_checkpoint=true"),
         With(kTorchtitanEngine, "resume_checkpoint=true"),
         With(kTorchtitanEngine, "optimizer=clip_norm:0.5"), With(kGemma, "attention=sdpa"),
         With(kFsdpEngine, "checkpoint=sharded-bf16,rope_keys=rope_parameters"),
         "engine=verl-fsdp*,precision=fp32,checkpoint=mxfp4",
         "engine=main,library=main,config=rms_norm_eps*",
         "engine=verl-fsdp@pypi:verl==0.7.1,head=value,attention=sdpa",
         "engine=torchtitan,library=baba6d82e,optimizer=*warmup*"},
        "more-probes");
  }
};

TEST_F(RealProbesTest, MicroBatchesComeToTheSameAnswer) {
  EXPECT_EQ(VerdictOf({"verl-torchtitan", "micro_batches=2"}), "ok at golden");
  EXPECT_EQ(VerdictOf({"verl-fsdp", "input=padded", "micro_batches=2"}), "ok at golden");
}

TEST_F(MoreRealProbesTest, AWarmupComesToTheSameAnswer) {
  EXPECT_EQ(VerdictOf({"engine=torchtitan", "warmup_steps:2"}), "ok at golden");
}

// sdpa is wrong there: a document that is cut across the ranks loses its first half.
TEST_F(RealProbesTest, FlashAttentionIsRightWithUlyssesAndSaysThatItsKernelIsAStandIn) {
  const Json& cell = Cell({"verl-fsdp", "attention=flash_attention_2"});
  EXPECT_EQ(VerdictOf({"verl-fsdp", "attention=flash_attention_2"}), "ok at golden");
  EXPECT_EQ(cell["stand_ins"], Json({"flash_attn"}));
  EXPECT_THAT(std::string(cell["message"]), HasSubstr("stand-in kernel"));
}

TEST_F(RealProbesTest, WhetherFlashAttentionIsToldWhereDocumentsAreDependsOnTheInput) {
  EXPECT_EQ(VerdictOf({"input=packed+tail+mask"}), "wrong at mask, mask-leak");
  EXPECT_EQ(VerdictOf({"input=packed+rows+lengths"}), "ok at golden");
}

TEST_F(MoreRealProbesTest, ASoftcapThatSdpaDropsIsNamed) {
  EXPECT_EQ(VerdictOf({"gemma2", "attention=sdpa"}), "wrong at golden, log-probs-off");
  EXPECT_THAT(std::string(Cell({"gemma2", "attention=sdpa"})["message"]),
              HasSubstr("softcap dropped"));
}

TEST_F(RealProbesTest, PaddedInputHasNoWayIntoTorchtitansMasks) {
  EXPECT_EQ(VerdictOf({"verl-torchtitan", "input=padded"}), "broken at forward, assertion");
  EXPECT_THAT(std::string(Cell({"verl-torchtitan", "input=padded"})["message"]),
              HasSubstr("attention_masks must be instance of BlockMask"));
}

TEST_F(MoreRealProbesTest, AnEmptyCheckpointFolderMakesTheEngineTrainFromRandomWeights) {
  EXPECT_EQ(VerdictOf({"leftover_checkpoint=true"}), "wrong at golden, weights-not-loaded");
}

TEST_F(MoreRealProbesTest, TheClippingNormThatTheEngineIgnoresIsSeen) {
  EXPECT_EQ(VerdictOf({"verl-torchtitan", "clip_norm:0.5"}), "wrong at step, clipping-off");
}

TEST_F(RealProbesTest, WeightsAreExportedAndCheckpointsResumed) {
  EXPECT_EQ(VerdictOf({"verl-fsdp", "resume_checkpoint=true"}), "ok at golden");
}

TEST_F(MoreRealProbesTest, ACheckpointThatIsNeverWrittenIsSeen) {
  // torchtitan's checkpoints have an interval, and verl does not set it.
  EXPECT_EQ(VerdictOf({"verl-torchtitan", "resume_checkpoint=true"}),
            "wrong at resume, resume-off");
  EXPECT_THAT(std::string(Cell({"verl-torchtitan", "resume_checkpoint=true"})["message"]),
              HasSubstr("wrote no file"));
}

TEST_F(MoreRealProbesTest, TheCriticsAttentionIsHonoured) {
  // The backend was as asked, which is judged first; the engine computed in bf16 all the same.
  EXPECT_EQ(VerdictOf({"verl==0.7.1", "head=value"}), "wrong at forward, precision-ignored");
}

TEST_F(RealProbesTest, TheCriticsAttentionIsOverridden) {
  EXPECT_EQ(VerdictOf({"verl==0.9.1", "head=value"}), "broken at construct, override-ignored");
}

TEST_F(MoreRealProbesTest, ShardsInBf16AndTheNewRopeKeysAreRead) {
  EXPECT_EQ(VerdictOf({"verl-fsdp", "checkpoint=sharded-bf16"}), "ok at golden");
}

// Its sinks are a parameter of the attention itself, which FSDP takes back after the forward.
TEST_F(MoreRealProbesTest, GptOssLearnsFromTheFilesThatItIsPublishedIn) {
  EXPECT_EQ(VerdictOf({"verl-fsdp", "checkpoint=mxfp4"}), "ok at golden");
}

TEST_F(MoreRealProbesTest, ANumberThatTheFlavorOverrulesIsSeen) {
  EXPECT_EQ(VerdictOf({"verl-torchtitan", "config=rms_norm_eps"}), "wrong at load, config-ignored");
}

TEST_F(RealProbesTest, AKernelForAnotherDeviceIsUnsupportedAndNotRun) {
  EXPECT_EQ(VerdictOf({"attention=flex_flash"}), "unsupported at backend, device-missing");
  EXPECT_EQ(Cell({"attention=flex_flash"})["seconds"], 0);
}

}  // namespace
}  // namespace bkm
