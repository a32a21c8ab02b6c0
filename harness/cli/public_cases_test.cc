// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Cells of matrices/public.json: inputs like those of public reports that once got a wrong answer,
// and every rung after training with every layout that the planner allows. Needs the mirrors
// ($BKM_GIT_MIRRORS) and the package registry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "harness/base/json_facts.h"
#include "harness/testing/real_run.h"

namespace bkm {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Fields = RealRun::Fields;

constexpr char kPublicMatrix[] = "matrices/public.json";

std::string MessageOf(const RealRun& run, const Fields& fields) {
  return absl::StrCat(run.ReasonOf(fields), ": ", TextOf(run.Cell(fields), "message"));
}

class PublicCasesTest : public SharedRunTest<PublicCasesTest> {
 public:
  // In environments that other tests of every change make, too, with goldens and floors of small
  // models: each of its own costs minutes.
  static absl::StatusOr<RealRun> MakeRun() {
    return RealRun::Make(
        Filtered(
            {kPublicMatrix},
            {"input=padded,documents=9+1+20", "model=qwen3,export_weights=true,layout=dp_shard=2",
             "options=*fused*", "options=*lora*", "model=deepseek_v3,engine=transformers"}),
        "public");
  }
};

class MorePublicCasesTest : public SharedRunTest<MorePublicCasesTest> {
 public:
  // verl 0.6.0 ends by harness-error, as the tests below say.
  static absl::StatusOr<RealRun> MakeRun() {
    return RealRun::Make({kPublicMatrix}, "more-public", /*worst=*/2);
  }
};

TEST_F(PublicCasesTest, AShortDocumentInPaddingIsNoLeak) {
  EXPECT_EQ(run().VerdictOf({{"input", "padded"}, {"engine_label", "0.9.1"}}), "ok at golden");
}

TEST_F(PublicCasesTest, OneOfSeveralRanksExports) {
  EXPECT_THAT(MessageOf(run(), {{"layout", "dp_shard=2"}, {"model", "qwen3"}}),
              HasSubstr("transformers computes the same with the exported weights"));
}

TEST_F(PublicCasesTest, AnOptionActsOrTheVerdictSaysThatItDoesNot) {
  // verl's worker hands the option on, and so does the adapter.
  std::map<std::string, std::string> effects;
  std::string message;
  for (const Json& cell : ListOf(run().json(), "cells")) {
    if (TextOf(cell, "role") != "subject" || TextOf(cell, "engine") != "verl-fsdp") continue;
    for (const Json& effect : ListOf(cell, "effects")) {
      effects[TextOf(effect, "option")] = TextOf(effect, "effect");
      message = TextOf(cell, "message");
    }
  }
  EXPECT_EQ(effects["use_fused_kernels"], "acts");
  // torch's is the default of verl's own configuration.
  EXPECT_EQ(effects["fused_kernel_options"], "not observed");
  EXPECT_THAT(message, HasSubstr("fused_kernel_options was accepted, and no effect"));
}

TEST_F(PublicCasesTest, WhatHasNoGoldenIsUnsupported) {
  EXPECT_THAT(MessageOf(run(), {{"engine", "verl-fsdp"}, {"verdict", "unsupported"}}),
              HasSubstr("LoRA trains adapters"));
  EXPECT_THAT(MessageOf(run(), {{"engine", "transformers"}, {"model", "deepseek_v3"}}),
              HasSubstr("unsupported at construct, not-offered"));
}

TEST_F(MorePublicCasesTest, DeepseekAsPublishedHasAGoldenOfItsOwn) {
  EXPECT_EQ(run().VerdictOf({{"engine", "transformers"}, {"model", "deepseek_v3_published"}}),
            "ok at golden");
}

TEST_F(MorePublicCasesTest, AControlThatWasNeverAskedIsUnsupported) {
  EXPECT_EQ(run().ReasonOf({{"engine", "torchtitan"}, {"library_label", "baba6d82e"}}),
            "unsupported at backend, not-offered");
}

TEST_F(MorePublicCasesTest, ALayoutThatIsNotInEffectIsWrongAndOneThatIsExcludedIsRefused) {
  EXPECT_THAT(MessageOf(run(), {{"engine_label", "0.7.1"}, {"layout", "ulysses=2"}}),
              HasSubstr("wrong at forward, override-ignored: asked for ulysses=2, but rank 0 of 2 "
                        "was given all 271 tokens"));
  EXPECT_THAT(run().ReasonOf({{"engine_label", "0.8.0"}, {"layout", "ulysses=2"}}),
              StartsWith("refused at construct"));
}

TEST_F(MorePublicCasesTest, TransformersLeaksDocumentsWhereAConfigurationHasACache) {
  std::map<std::string, std::string> verdicts;
  for (const Json& cell : ListOf(run().json(), "cells")) {
    if (TextOf(cell, "library_label") != "5.9.0" || TextOf(cell, "role") != "subject") continue;
    const bool without = ObjectOf(ObjectOf(cell, "probe"), "config").contains("use_cache");
    verdicts[without ? "no cache" : "as published"] = TextOf(cell, "verdict");
  }
  EXPECT_EQ(verdicts["as published"], "wrong");
  EXPECT_EQ(verdicts["no cache"], "ok");
}

TEST_F(MorePublicCasesTest, ThePlannerTakesTheRuntimeThatALayoutNeeds) {
  const Json cell =
      run().Cell({{"engine", "transformers"}, {"layout", "tp=2"}, {"model", "qwen3"}});
  EXPECT_EQ(TextOf(cell, "runtime"), "cpu-accelerate");
  EXPECT_EQ(TextOf(cell, "verdict"), "ok") << TextOf(cell, "message");
}

TEST_F(MorePublicCasesTest, NothingOfOursBreaks) {
  int subjects = 0;
  for (const Json& cell : ListOf(run().json(), "cells")) {
    if (TextOf(cell, "role") != "subject") continue;
    ++subjects;
    EXPECT_THAT(TextOf(cell, "reason"),
                Not(AnyOf("evidence-malformed", "evidence-unreadable", "witness-missing")))
        << TextOf(cell, "id") << ": " << TextOf(cell, "message");
    // verl 0.6.0's configuration has no epsilon: the adapter says that it cannot ask.
    if (TextOf(cell, "engine_label") == "0.6.0") continue;
    EXPECT_NE(TextOf(cell, "reason"), "harness-error")
        << TextOf(cell, "id") << ": " << TextOf(cell, "message");
  }
  EXPECT_GE(subjects, 34);
}

TEST_F(MorePublicCasesTest, EveryRungRunsWithEveryLayout) {
  for (const char* layout : {"dp_replicate=2", "dp_shard=2", "dp_replicate=2+dp_shard=2"})
    EXPECT_EQ(run().VerdictOf({{"engine", "verl-fsdp"}, {"model", "llama3"}, {"layout", layout}}),
              "ok at golden");
  for (const char* layout : {"dp_replicate=2", "dp_shard=2", "tp=2", "dp_shard=2+tp=2"})
    EXPECT_EQ(
        run().VerdictOf({{"engine", "transformers"}, {"model", "llama3"}, {"layout", layout}}),
        "ok at golden");
  for (const char* layout : {"dp_shard=2", "tp=2", "dp_shard=2+tp=2"})
    EXPECT_EQ(
        run().ReasonOf({{"engine", "verl-torchtitan"}, {"model", "llama3"}, {"layout", layout}}),
        "wrong at resume, resume-off");
}

TEST_F(MorePublicCasesTest, AnOlderLayoutOfModulesIsDrivenOrNobodysFault) {
  EXPECT_EQ(run().VerdictOf({{"engine_label", "0.6.1"}}), "ok at golden");
  EXPECT_EQ(run().ReasonOf({{"engine_label", "0.6.0"}}), "unsupported at construct, harness-error");
}

TEST_F(MorePublicCasesTest, TwoVersionsWithTheSameHeadlineDifferInWhatFails) {
  const auto fails = [&](const char* library) {
    const Json cell = run().Cell({{"library_label", library}});
    std::set<std::string> claims;
    for (const Json& failed : ListOf(cell, "failures"))
      claims.insert(absl::StrCat(TextOf(failed, "claim"), ": ", TextOf(failed, "reason")));
    return claims;
  };
  // The router got its bias.
  EXPECT_TRUE(fails("41753c67b~1").contains("load: weights-not-loaded"));
  EXPECT_FALSE(fails("41753c67b").contains("load: weights-not-loaded"));
  EXPECT_TRUE(fails("41753c67b").contains("model: config-ignored")) << "YaRN is still left out";
}

TEST_F(MorePublicCasesTest, TheControlAsksTheLibraryAsItsTrainerDoes) {
  for (const char* layout : {"dp_shard=2", "tp=2"})
    EXPECT_EQ(run().VerdictOf({{"library_label", "5b7089939"}, {"layout", layout}}),
              "ok at golden");
  EXPECT_EQ(run().VerdictOf({{"engine", "torchtitan"}, {"model", "deepseek_v3"}}), "ok at golden");
}

// With an epsilon of its own: the norms of small vectors keep theirs, and all others have the new
// one.
TEST_F(MorePublicCasesTest, AnEngineTrainsDeepseekAsPublished) {
  EXPECT_EQ(run().VerdictOf({{"engine", "verl-fsdp"}, {"model", "deepseek_v3_published"}}),
            "ok at golden");
}

}  // namespace
}  // namespace bkm
