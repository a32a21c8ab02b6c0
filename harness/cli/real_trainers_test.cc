// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Cells of matrices/trainers.json: engines driven by their own trainers, from data files to the
// numbers of each step. MoreRealTrainersTest runs the whole matrix. Needs the mirrors
// ($BKM_GIT_MIRRORS) and the package registry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "harness/base/json_facts.h"
#include "harness/testing/real_run.h"

namespace bkm {
namespace {

using ::testing::HasSubstr;
using Fields = RealRun::Fields;

constexpr char kTrainersMatrix[] = "matrices/trainers.json";

class RealTrainersTest : public SharedRunTest<RealTrainersTest> {
 public:
  static absl::StatusOr<RealRun> MakeRun() {
    return RealRun::Make(Filtered({kTrainersMatrix, "--no-controls"},
                                  {"engine=0.9.1,runtime=cpu-serving,model=qwen3,precision=bf16",
                                   "engine=0.9.1,runtime=cpu,model=qwen3",
                                   "engine=0.9.1,model=gemma2,attention=flash_attention_2"}),
                         "trainers");
  }
};

TEST_F(RealTrainersTest, VerlsTrainerTrainsWhatItsDataFileSays) {
  const Fields cell = {{"runtime", "cpu-serving"}, {"model", "qwen3"}};
  EXPECT_EQ(run().VerdictOf(cell), "ok at golden") << run().Cell(cell);
  const Json verdict = run().FileOf(cell, "verdict.json");
  const Json data = ObjectOf(ObjectOf(ObjectOf(verdict, "evidence"), "checks"), "data");
  EXPECT_EQ(data, (Json{{"outcome", "passed"}, {"steps", 3}, {"labels", 336}}));
}

TEST_F(RealTrainersTest, VerlsTrainerAsksForAPackageThatVerlDoesNotDeclare) {
  const Fields cell = {{"runtime", "cpu"}, {"model", "qwen3"}};
  EXPECT_EQ(run().ReasonOf(cell), "broken at import, module-missing");
  EXPECT_THAT(TextOf(run().Cell(cell), "message"), HasSubstr("uvicorn"));
}

TEST_F(RealTrainersTest, FlashAttentionIsRightUnderTheTrainer) {
  const Fields cell = {{"model", "gemma2"}};
  EXPECT_EQ(run().VerdictOf(cell), "ok at golden") << run().Cell(cell);
}

class MoreRealTrainersTest : public SharedRunTest<MoreRealTrainersTest> {
 public:
  static absl::StatusOr<RealRun> MakeRun() {
    return RealRun::Make({kTrainersMatrix, "--no-controls"}, "more-trainers");
  }
};

TEST_F(MoreRealTrainersTest, EveryVersionThatStartsTrainsWhatItsDataFileSays) {
  int subjects = 0;
  for (const Json& cell : ListOf(run().json(), "cells")) {
    if (TextOf(cell, "role") != "subject" || TextOf(cell, "runtime") != "cpu-serving") continue;
    ++subjects;
    const Json& probe = ObjectOf(cell, "probe");
    // transformers' sdpa leaves gemma2's softcap out, under whatever trainer.
    const bool lacks_softcap =
        TextOf(probe, "model") == "gemma2" && TextOf(probe, "attention") == "sdpa";
    EXPECT_EQ(TextOf(cell, "verdict"), lacks_softcap ? "wrong" : "ok")
        << TextOf(cell, "id") << ": " << TextOf(cell, "message");
  }
  EXPECT_EQ(subjects, 12);
}

TEST_F(MoreRealTrainersTest, OnlyTheOldestVersionStartsWithWhatItDeclares) {
  EXPECT_EQ(run().VerdictOf({{"runtime", "cpu"}, {"engine_label", "0.7.1"}}), "ok at golden");
  for (const char* version : {"0.8.0", "0.9.0", "0.9.1"})
    EXPECT_EQ(run().ReasonOf({{"runtime", "cpu"}, {"engine_label", version}}),
              "broken at import, module-missing");
}

}  // namespace
}  // namespace bkm
